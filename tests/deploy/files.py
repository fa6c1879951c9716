"""Parsers for the deployment files."""

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from axolotl_core._version import __version__

ROOT: Final = Path(__file__).resolve().parents[2]
DEPLOY: Final = ROOT / "deploy"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """The command of an instruction in its exec form, without options and the word CMD."""
        listed = re.search(r"\[.*\]$", self.text)
        assert listed is not None, f"{self.name} is not in the exec form, so that a shell would get the signals"
        words = json.loads(listed[0])
        assert isinstance(words, list)
        return words

    @property
    def options(self) -> dict[str, str]:
        """The options before the command, such as `--timeout=5s`."""
        return dict(re.findall(r"--([a-z-]+)=(\S+)", self.text.partition("[")[0]))


def stages_of(path: Path) -> list[list[Instruction]]:
    """Parse a Dockerfile; each stage begins with its FROM."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    stages: list[list[Instruction]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append([])
        if stages:
            stages[-1].append(Instruction(name, rest.strip()))
    return stages


def find(stage: list[Instruction], name: str) -> Instruction:
    """Return the only instruction with that name."""
    (found,) = (one for one in stage if one.name == name)
    return found


def variables_of(stage: list[Instruction]) -> dict[str, str]:
    """Return all variables that a stage sets."""
    return dict(pair for one in stage if one.name == "ENV" for pair in re.findall(r"(\w+)=(\S+)", one.text))


def reaches_the_builder(path: str) -> bool:
    """Return whether `.dockerignore` includes a file; the last matching line decides."""
    through = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern = line.removeprefix("!")
            within = pattern.removeprefix("**/")
            matches = any(fnmatch.fnmatch(part, pattern) for part in _leading_parts(path)) or (
                within != pattern and any(fnmatch.fnmatch(part, within) for part in path.split("/"))
            )
            through = line.startswith("!") if matches else through
    return through


def _leading_parts(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[: count + 1]) for count in range(len(parts)))


def documents(name: str) -> list[dict[str, Any]]:
    """Parse the documents of a YAML file."""
    return [one for one in yaml.safe_load_all((DEPLOY / name).read_text()) if one is not None]


def resource(kind: str, name: str = "axolotl") -> dict[str, Any]:
    """Return the Kubernetes resource of a kind with a name."""
    (found,) = (one for one in documents("kubernetes.yaml") if one["kind"] == kind and one["metadata"]["name"] == name)
    return found


def compose() -> dict[str, Any]:
    """Parse the compose file."""
    (found,) = documents("compose.yaml")
    return found


def compose_variables(service: str = "server", **given: str) -> dict[str, str]:
    """Return the variables of a service in the compose file, after substituting those of the shell."""
    variables: Mapping[str, Any] = compose()["services"][service]["environment"]
    assert all(isinstance(value, str) for value in variables.values()), "YAML would make something else of a value"
    return {
        name: re.sub(r"\$\{(\w+):\?[^}]*\}", lambda match: given[match[1]], value) for name, value in variables.items()
    }


def project_version() -> str:
    """Return the version of the project."""
    return __version__
