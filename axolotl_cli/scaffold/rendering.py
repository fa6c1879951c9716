"""Templates rendered into the directory of a new project, which appears complete or not at all."""

import os
import re
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.metadata import distribution, version
from pathlib import Path
from tempfile import mkdtemp
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import axolotl_core
from axolotl_cli.scaffold.project_name import ProjectName
from axolotl_core.errors import ConfigurationError

PACKAGES: Final = ("axolotl_cli", "axolotl_core", "axolotl_examples", "axolotl_server", "axolotl_testing")
"""The packages of a wheel, which lie next to each other in an installation and in a checkout."""

LEFTOVERS: Final = frozenset({"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", "orders.db"})
"""What running the code leaves behind in a checkout."""

_DESCRIPTION: Final = frozenset({"METADATA", "WHEEL", "entry_points.txt", "licenses"})
"""The files and folders of a distribution's description that do not depend on the place of an installation."""
TEMPLATES: Final = Path(__file__).parent / "templates"
"""A folder for each variant. Each is a project that works as it stands; dot files begin with `dot_`."""

VENDORED: Final = "vendor"
"""The folder of the wheel in a project. Lines of the templates that name it are left out if there is none."""

_VERSION: Final = ">=0.0.0.dev0"
_DOT: Final = "dot_"


def write_wheel(directory: Path) -> str:
    """Write a wheel of the installed Axolotl to a new directory, and return its name.

    Neither the original wheel, nor build tools, nor a network are needed: what is installed is packed again.
    """
    name = f"axolotl_mcp-{distribution('axolotl-mcp').version}"
    directory.mkdir()
    wheel = directory / f"{name}-py3-none-any.whl"
    records = [f"{name}.dist-info/RECORD,,\n"]
    with ZipFile(wheel, "w") as archive:
        for inside, file in _files():
            content = file.read_bytes()
            digest = urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{inside},sha256={digest},{len(content)}\n")
            archive.writestr(_entry(inside), content)
        archive.writestr(_entry(f"{name}.dist-info/RECORD"), "".join(records))
    return wheel.name


def _files() -> Iterator[tuple[str, Path]]:
    """Iterate over the files of the wheel: the name inside and the place."""
    root = Path(axolotl_core.__file__).parents[1]
    for package in PACKAGES:
        for file in sorted(root.joinpath(package).rglob("*")):
            place = file.relative_to(root)
            if file.is_file() and LEFTOVERS.isdisjoint(place.parts):
                yield place.as_posix(), file
    for listed in distribution("axolotl-mcp").files or ():
        if listed.parts[0].endswith(".dist-info") and listed.parts[1] in _DESCRIPTION:
            yield listed.as_posix(), Path(str(listed.locate()))


def _entry(inside: str) -> ZipInfo:
    """An entry that everyone may read. Its date is always the same."""
    entry = ZipInfo(inside)
    entry.external_attr = 0o100644 << 16
    entry.compress_type = ZIP_DEFLATED
    return entry


def check_target(target: Path) -> None:
    """Raise ConfigurationError unless a directory can be created, or exists and is empty."""
    if not target.parent.is_dir():
        raise ConfigurationError(f"There is no directory {target.parent}: create it first")
    if target.is_dir() and target.samefile(Path.cwd()):
        raise ConfigurationError(f"{target} is the current directory: go to its parent, and name it with --directory")
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ConfigurationError(f"{target} exists and is not empty: nothing was written")


def make_project(variant: str, name: ProjectName, target: Path) -> None:
    """Write the files of a variant and their lock file into a temporary directory, which then becomes the target.

    If anything fails, nothing is left. Raises ConfigurationError if the target exists and is not empty.
    """
    check_target(target)
    temporary = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        mask = os.umask(0o077)
        os.umask(mask)
        temporary.chmod(0o777 & ~mask)
        # An installation from a file, a checkout or a URL, and not from a package index, has a note of it (PEP 610).
        is_noted = distribution("axolotl-mcp").read_text("direct_url.json") is not None
        wheel = write_wheel(temporary / VENDORED) if is_noted else None
        # Hatchling replaces `{root:uri}`: no path of this machine becomes part of the project.
        place = f">={version('axolotl-mcp')}" if wheel is None else f" @ {{root:uri}}/{VENDORED}/{wheel}"
        _render(TEMPLATES / variant, temporary, {**name.words, _VERSION: place}, has_wheel=wheel is not None)
        _freeze_contract(temporary, name)
        check_target(target)
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _freeze_contract(directory: Path, name: ProjectName) -> None:
    """Write the lock file of a new project in another process, which imports the project; or raise ConfigurationError.

    The process leaves no database and no compiled modules behind.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AXOLOTL_")}
    environment = {**kept, f"{name.package.upper()}_DATABASE": ":memory:", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "axolotl_cli", "contract", "freeze"]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigurationError(f"The contract of the new project could not be frozen: {done.stderr.strip()}")


def _render(template: Path, directory: Path, words: Mapping[str, str], *, has_wheel: bool) -> None:
    pattern = re.compile("|".join(map(re.escape, words)))

    def replaced(text: str) -> str:
        return pattern.sub(lambda match: words[match[0]], text)

    for source in sorted(template.rglob("*")):
        place = source.relative_to(template)
        if source.is_dir() or not LEFTOVERS.isdisjoint(place.parts):
            continue
        parts = (f".{part.removeprefix(_DOT)}" if part.startswith(_DOT) else replaced(part) for part in place.parts)
        file = directory.joinpath(*parts)
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
        text = "".join(line for line in lines if has_wheel or VENDORED not in line)
        file.write_text(replaced(text), encoding="utf-8")
