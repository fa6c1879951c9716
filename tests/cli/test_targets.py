"""The target of a command."""

import json

import pytest

from tests.cli.conftest import CommandLine
from tests.support.commands import ROOT

TOOLS = ["greet", "double", "complain", "crash", "count", "read"]
STARTER = ["echo", "calculate", "current_time", "text_statistics", "keyword_search"]
FILE = str(ROOT / "tests" / "support" / "containers" / "command_containers.py")


def names(cli: CommandLine, *words: str) -> list[str]:
    answer = cli("list", *words, "--json")
    assert answer.code == 0, answer.stderr
    return [tool["name"] for tool in json.loads(answer.stdout)["tools"]]


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("tests.support.containers.command_containers:Container", id="class"),
        pytest.param("tests.support.containers.command_containers:instance", id="instance"),
        pytest.param("tests.support.containers.command_containers:make", id="factory"),
        pytest.param("tests.support.containers.command_containers", id="module"),
        pytest.param(FILE, id="file"),
        pytest.param(f"{FILE}:Container", id="file-and-class"),
    ],
)
def test_forms(cli: CommandLine, target: str) -> None:
    """A target names a container class, a container or a function that returns one, in a module or a file."""
    assert names(cli, target) == TOOLS


@pytest.mark.parametrize(
    ("target", "finding"),
    [
        pytest.param("absent_module:Container", "There is no module 'absent_module'", id="no-module"),
        pytest.param("tests.absent.part:Container", "There is no module 'tests.absent'", id="no-submodule"),
        pytest.param("needs_more:Container", "Module 'needs_more' was found, but it needs 'not_installed'", id="needs"),
        pytest.param("fails:Container", "Module 'fails' was found, but importing it failed", id="fails"),
        pytest.param(
            "tests.support.containers.command_containers:Contaner", "did you mean 'Container'?", id="near-miss"
        ),
        pytest.param(
            "tests.support.containers.command_containers:greet.name",
            "is str, not a dependency-injector container",
            id="other",
        ),
        pytest.param("absent.py:Container", "There is no file absent.py", id="no-file"),
        pytest.param("fails_later:make", "fails_later:make failed when it was called: KeyError", id="factory-fails"),
        pytest.param("unnamed", "unnamed does not name a container", id="no-container"),
    ],
)
def test_wrong_targets(cli: CommandLine, target: str, finding: str) -> None:
    """An invalid target is reported on one line."""
    cli.write("needs_more.py", "import not_installed\n")
    cli.write("fails.py", "raise ValueError('two\\nlines')\n")
    cli.write("fails_later.py", "def make():\n    raise KeyError('x')\n")
    cli.write("unnamed.py", "")
    answer = cli("list", target)
    assert (answer.code, answer.stdout) == (2, "")
    [line] = answer.stderr.splitlines()
    assert finding in line


def test_starter(cli: CommandLine) -> None:
    """Without a target, the starter set is used."""
    assert names(cli)[:5] == STARTER


def test_own_file(cli: CommandLine) -> None:
    """The settings file names the default target, which `-` stands for."""
    cli.write("axolotl.toml", 'target = "tests.support.containers.command_containers:Empty"\n')
    assert names(cli) == names(cli, "-") == []


def test_project_file(cli: CommandLine) -> None:
    """A table in pyproject.toml does the same."""
    cli.write("pyproject.toml", '[tool.axolotl]\ntarget = "tests.support.containers.command_containers:Empty"\n')
    assert names(cli) == []


def test_precedence(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument takes precedence over the environment, which takes precedence over the file."""
    cli.write("axolotl.toml", 'target = "tests.support.containers.command_containers:Empty"\n')
    monkeypatch.setenv("AXOLOTL_TARGET", "tests.support.containers.command_containers:Polite")
    assert names(cli) == ["greet"]
    assert names(cli, "tests.support.containers.command_containers:Numeric") == ["double"]


def test_environment_of_commands_that_need_a_target(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` stands for the target in the environment, if there is one."""
    cli.write("axolotl.toml", 'target = "tests.support.containers.command_containers:Empty"\n')
    monkeypatch.setenv("AXOLOTL_TARGET", "tests.support.containers.full_container:Container")
    assert cli("prompt", "-", "praise", "dish=soup").stdout == "Praise soup 1 times.\n"
    assert cli("read", "-", "ui://menu").stdout == "<p>Soup</p>"
    monkeypatch.setenv("AXOLOTL_TARGET", "-")
    assert cli("call", "-", "greet").code == 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param([], ["greet", "double"], id="all"),
        pytest.param(["--toolset", "numeric"], ["double"], id="one"),
        pytest.param(["--toolset", "polite", "--toolset", "numeric"], ["greet", "double"], id="repeated"),
        pytest.param(["--toolset", "polite, numeric,"], ["greet", "double"], id="commas"),
    ],
)
def test_toolsets(cli: CommandLine, words: list[str], expected: list[str]) -> None:
    """Tool sets can be selected one by one or in a list."""
    assert names(cli, "tests.support.containers.command_containers:Sets", *words) == expected


def test_toolset_precedence(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag takes precedence over the environment, which takes precedence over the file."""
    cli.write("axolotl.toml", 'target = "tests.support.containers.command_containers:Sets"\ntoolset = "numeric"\n')
    assert names(cli) == ["double"]
    monkeypatch.setenv("AXOLOTL_TOOLSETS", "polite")
    assert names(cli) == ["greet"]
    assert names(cli, "--toolset", "numeric") == ["double"]


def test_unknown_toolset(cli: CommandLine) -> None:
    """An unknown tool set is an error with a suggestion."""
    answer = cli("list", "tests.support.containers.command_containers:Sets", "--toolset", "numerc")
    assert answer.code == 2
    assert "did you mean 'numeric'?" in answer.stderr
