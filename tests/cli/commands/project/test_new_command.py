"""`axolotl new`: names, directories, and projects that pass their own checks."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PathDistribution
from pathlib import Path
from zipfile import ZipFile

import pytest

from axolotl_cli.scaffold.rendering import PACKAGES, TEMPLATES
from axolotl_core._version import __version__
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
        ("tests", "projects have a folder of that name"),
        ("vendor", "projects have a folder of that name"),
    ],
)
def test_refused_names(cli: CommandLine, name: str, problem: str) -> None:
    """A name that Python or an index could not use is refused."""
    answer = cli("new", name)
    assert answer.code == 2
    assert problem in answer.stderr
    assert not any(cli.directory.iterdir())


def installed(monkeypatch: pytest.MonkeyPatch, *, from_index: bool) -> None:
    """Decide where Axolotl seems to come from: an index, or a checkout."""
    origin = None if from_index else '{"url": "file:///srv/axolotl", "dir_info": {}}'
    read = PathDistribution.read_text

    def read_text(self: PathDistribution, filename: str) -> str | None:
        return origin if filename == "direct_url.json" else read(self, filename)

    monkeypatch.setattr(PathDistribution, "read_text", read_text)


@pytest.mark.usefixtures("unfrozen")
def test_the_next_commands(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last lines are the commands to continue with, and what is not obvious to commit."""
    commands = "  python -m pip install -e '.[dev]'\n  pytest\n  axolotl dev\n"
    installed(monkeypatch, from_index=True)
    assert cli("new", "shop").stdout == f"Created shop in shop. Next:\n\n  cd shop\n{commands}"
    installed(monkeypatch, from_index=False)
    assert cli("new", "store").stdout == (
        f"Created store in store. Next:\n\n  cd store\n{commands}\n"
        "Commit vendor/ too: Axolotl was not installed from a package index, so it is a wheel there.\n"
    )


@pytest.mark.usefixtures("unfrozen")
@pytest.mark.parametrize("options", [[], ["--minimal"]], ids=["full", "minimal"])
def test_axolotl_of_a_project(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    """Without an index, the project has a wheel that it names without a path of this machine; otherwise a version.

    `make release` installs the project from its wheel.
    """
    installed(monkeypatch, from_index=False)
    assert cli("new", "shop", *options).code == 0
    [wheel] = (cli.directory / "shop/vendor").iterdir()
    assert wheel.name == f"axolotl_mcp-{__version__}-py3-none-any.whl"
    for requirements in requirements_of(cli.directory / "shop"):
        assert re.fullmatch(
            rf"axolotl-mcp(\[[a-z,]+\])? @ \{{root:uri\}}/vendor/{re.escape(wheel.name)}", requirements[0]
        )
    assert not any(str(cli.directory) in path.read_text() for path in texts_of(cli.directory / "shop"))
    installed(monkeypatch, from_index=True)
    assert cli("new", "store", *options).code == 0
    for requirements in requirements_of(cli.directory / "store"):
        assert re.fullmatch(rf"axolotl-mcp(\[[a-z,]+\])?>={re.escape(__version__)}", requirements[0])
    assert not any("vendor" in path.read_text() for path in texts_of(cli.directory / "store"))


def requirements_of(project: Path) -> list[list[str]]:
    """The requirements of a project, and those of its extra `dev`. Axolotl is the first."""
    described = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    return [described["dependencies"], described["optional-dependencies"]["dev"]]


def texts_of(project: Path) -> list[Path]:
    """The files of a project but its wheel."""
    return [path for path in project.rglob("*") if path.is_file() and path.suffix != ".whl"]


@pytest.mark.usefixtures("unfrozen")
def test_wheel_of_a_project(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel has all packages with their data, the license and the commands, and nothing of this installation."""
    installed(monkeypatch, from_index=False)
    assert cli("new", "shop", "--minimal").code == 0
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert sorted(PACKAGES) == sorted(described["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    with ZipFile(cli.directory / f"shop/vendor/axolotl_mcp-{__version__}-py3-none-any.whl") as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        record = archive.read(f"axolotl_mcp-{__version__}.dist-info/RECORD").decode()
    assert sorted(line.split(",")[0] for line in record.splitlines()) == sorted(names)
    assert {name.partition("/")[0] for name in names} == {*PACKAGES, f"axolotl_mcp-{__version__}.dist-info"}
    assert {"axolotl_core/py.typed", "axolotl_cli/scaffold/templates/full/dot_gitignore"} < {*names}
    described_by = {name.split("/", 1)[1] for name in names if ".dist-info/" in name}
    assert described_by - {name for name in described_by if name.startswith("sboms/")} == {
        "METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip
    assert not any("__pycache__" in name for name in names)


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

    `make release` also runs its tests, its lint and the type checker.
    """
    assert cli("new", "shop", *(["--minimal"] if variant == "minimal" else [])).code == 0
    project = cli.directory / "shop"
    left = [path for path in texts_of(project) if WORDS.search(f"{path.relative_to(project)}\n{path.read_text()}")]
    assert left == []
    checks_of(project, "axolotl_cli check --strict", "axolotl_cli check --strict --profile dev")
    checks_of(project, "axolotl_cli contract check", "axolotl_cli budget --max-tokens 4000")
    if variant == "full":
        told = (project / "README.md").read_text() + (project / "AGENTS.md").read_text()
        calls = re.findall(r"axolotl (call .+?)(?:`|  )", told.replace("NAME key=value", "track_order number=7"))
        assert len(calls) == 2
        checks_of(project, *(f"axolotl_cli {call}" for call in calls))


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
