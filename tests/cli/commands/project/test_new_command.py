"""`axolotl new`: names, directories, and projects that pass their own checks."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from axolotl_cli.scaffold.rendering import TEMPLATES
from tests.cli.conftest import CommandLine
from tests.support.commands import ROOT, environment_with

WORDS = re.compile(r"acme|AcmeShop|0\.0\.0\.dev0|dot_", re.IGNORECASE)
"""What must not be left of a template."""


@pytest.fixture
def unfrozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the lock file, whose process takes time."""
    monkeypatch.setattr("axolotl_cli.scaffold.rendering.sys.executable", "/bin/true")


@pytest.mark.usefixtures("unfrozen")
@pytest.mark.parametrize("name", ["shop", "acme-shop", "my_shop", "s", "shop2"])
def test_names(cli: CommandLine, name: str) -> None:
    """A name becomes the package, the distribution and the variables of the project."""
    answer = cli("new", name)
    assert (answer.code, answer.stderr) == (0, "")
    assert (cli.directory / name / name.replace("-", "_") / "container.py").is_file()
    written = (cli.directory / name / "pyproject.toml").read_text()
    assert f'name = "{name.replace("_", "-")}"' in written
    assert f"{name.replace('-', '_').upper()}_DATABASE" in (cli.directory / name / "Dockerfile").read_text()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Shop", "use lower-case letters"),
        ("2shop", "begin with a letter"),
        ("shop-", "end with a letter or digit"),
        ("../shop", "use lower-case letters"),
        ("s" * 51, "at most 50 characters"),
        ("class", "a keyword"),
        ("match", "a keyword"),
        ("json", "a module 'json' exists already"),
        ("axolotl-core", "a module 'axolotl_core' exists already"),
        ("tests", "a module 'tests' exists already"),
    ],
)
def test_refused_names(cli: CommandLine, name: str, problem: str) -> None:
    """A name that Python or an index could not use is refused."""
    answer = cli("new", name)
    assert answer.code == 2
    assert problem in answer.stderr
    assert not any(cli.directory.iterdir())


@pytest.mark.usefixtures("unfrozen")
def test_the_next_commands(cli: CommandLine) -> None:
    """The last lines are the commands to continue with."""
    assert cli("new", "shop").stdout == (
        "Created shop in shop. Next:\n\n  cd shop\n  python -m pip install -e '.[dev]'\n  pytest\n  axolotl dev\n"
    )


@pytest.mark.usefixtures("unfrozen")
def test_nothing_is_overwritten(cli: CommandLine) -> None:
    """A directory with content, a file and the current directory stay as they are; an empty directory is used."""
    kept = cli.directory / "shop" / "kept.txt"
    kept.parent.mkdir()
    assert cli("new", "store", "--minimal", "--directory", "shop").code == 0
    shutil.rmtree(kept.parent)
    kept.parent.mkdir()
    kept.write_text("mine")
    for words in (["shop"], ["store", "--directory", "shop/kept.txt"], ["store", "--directory", "shop"]):
        answer = cli("new", *words)
        assert answer.code == 2
        assert "exists and is not empty: nothing was written" in answer.stderr
    assert "is the current directory" in cli("new", "store", "--directory", ".").stderr
    assert "There is no directory missing" in cli("new", "store", "--directory", "missing/store").stderr
    assert [path.name for path in cli.directory.rglob("*")] == ["shop", "kept.txt"]
    assert kept.read_text() == "mine"


def test_nothing_is_left_after_a_failure(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails leaves no directory, not even a temporary one."""
    written: list[Path] = []

    def fail_later(path: Path, text: str, encoding: str) -> None:
        written.append(path)
        path.write_bytes(text.encode(encoding))
        if len(written) == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail_later)
    with pytest.raises(OSError, match="No space left"):
        cli("new", "shop")
    assert len(written) == 3
    assert not any(cli.directory.iterdir())


def test_nothing_is_left_without_a_contract(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project whose contract cannot be frozen is not created."""
    monkeypatch.setattr("axolotl_cli.scaffold.rendering.sys.executable", "/bin/false")
    answer = cli("new", "shop", "--minimal")
    assert answer.code == 2
    assert "The contract of the new project could not be frozen" in answer.stderr
    assert not any(cli.directory.iterdir())


def test_packages_that_skills_need(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra `skills`, the error says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    answer = cli("new", "shop")
    assert answer.code == 2
    assert answer.stderr == (
        "Error: A full project has a skill, which needs the extra skills: pip install 'pyyaml>=6.0', or use --minimal\n"
    )


def checks_of(directory: Path, *commands: str) -> None:
    """Run commands of Python modules in a project."""
    for command in commands:
        words = [sys.executable, "-m", *command.split()]
        done = subprocess.run(words, cwd=directory, env=environment_with(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["full", "minimal"])
def test_a_project_passes_its_own_checks(cli: CommandLine, variant: str) -> None:
    """The checks of the tools, the contract and the budget pass, and no word of the template is left.

    `make scaffold` also runs its tests, its lint and the type checker.
    """
    assert cli("new", "shop", *(["--minimal"] if variant == "minimal" else [])).code == 0
    project = cli.directory / "shop"
    files = [path for path in project.rglob("*") if path.is_file()]
    left = [path for path in files if WORDS.search(f"{path.relative_to(project)}\n{path.read_text()}")]
    assert left == []
    checks_of(project, "axolotl_cli check --strict", "axolotl_cli check --strict --profile dev")
    checks_of(project, "axolotl_cli contract check", "axolotl_cli budget --max-tokens 4000")


def test_templates_follow_the_repository() -> None:
    """The image and the actions of a new project are those of this repository, and its instructions are short."""
    template = TEMPLATES / "full"
    pinned = re.compile(r"sha256:[0-9a-f]{64}|actions/\S+@[0-9a-f]{40}")
    ours = "".join(
        path.read_text() for path in (ROOT / "Dockerfile", *sorted((ROOT / ".github/workflows").glob("*.yml")))
    )
    theirs = (template / "Dockerfile").read_text() + (template / "dot_github/workflows/ci.yml").read_text()
    assert {*pinned.findall(theirs)} - {*pinned.findall(ours)} == set()
    assert len((template / "AGENTS.md").read_text().splitlines()) < 60
