"""The target of a command."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.support.commands import ROOT
from tests.support.processes import READY, Processes

TOOLS = ["greet", "double", "complain", "crash", "count", "read"]
STARTER = ["echo", "calculate", "current_time", "text_statistics", "keyword_search"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
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
        pytest.param("absent_module:Container", "Module 'absent_module' not found", id="no-module"),
        pytest.param("tests.absent.part:Container", "Module 'tests.absent' not found", id="no-submodule"),
        pytest.param(
            "needs_more:Container",
            "Module 'needs_more' was found, but importing it failed (needs_more.py:1): ModuleNotFoundError: No module "
            "named 'not_installed'",
            id="needs",
        ),
        pytest.param(
            "fails:Container", "Module 'fails' was found, but importing it failed (fails.py:1): Val", id="fails"
        ),
        pytest.param("inner.py", "importing it failed (deep.py:2): ZeroDivisionError: division", id="chain"),
        pytest.param("typo.py", "importing it failed: SyntaxError: invalid syntax (typo.py, line 1)", id="syntax"),
        pytest.param("fials.py", "There is no file fials.py; did you mean fails.py?", id="misspelled-file"),
        pytest.param(".", "'.' is not the name of a module: give pkg.module:Container or path/file.py", id="directory"),
        pytest.param(
            "tests.support.containers.command_containers:Contaner", "did you mean 'Container'?", id="near-miss"
        ),
        pytest.param(
            "tests.support.containers.command_containers:greet.name",
            "is str, not a dependency-injector container",
            id="other",
        ),
        pytest.param("absent.py:Container", "There is no file absent.py", id="no-file"),
        pytest.param(
            "fails_later:make",
            "fails_later:make failed when it was called (fails_later.py:2): KeyError",
            id="factory-fails",
        ),
        pytest.param("unnamed", "unnamed has no container, and defines no tool", id="no-container"),
    ],
)
def test_wrong_targets(cli: CommandLine, target: str, finding: str) -> None:
    """An invalid target is reported on one line."""
    cli.write("needs_more.py", "import not_installed\n")
    cli.write("fails.py", "raise ValueError('two\\nlines')\n")
    cli.write("fails_later.py", "def make():\n    raise KeyError('x')\n")
    cli.write("unnamed.py", "")
    cli.write("inner.py", "import deep\n")
    cli.write("deep.py", "zero = 0\n1 / zero\n")
    cli.write("typo.py", "def make(:\n")
    answer = cli("list", target)
    assert (answer.code, answer.stdout) == (2, "")
    [line] = answer.stderr.splitlines()
    assert finding in line
    checked = cli("check", target)
    assert checked.code == 2
    assert finding in checked.stdout


WITHOUT_A_TARGET = [
    *(["serve"], ["serve", "-t", "http"], ["serve", "-t", "http", "-w", "2"], ["dev"], ["install", "json"]),
    *(["list"], ["inspect"], ["check"], ["call", "-", "echo"], ["prompt", "-", "greet"], ["read", "-", "a://b"]),
    ["policy", "explain", "echo", "--as", "ada"],
]


@pytest.mark.parametrize("words", WITHOUT_A_TARGET, ids=" ".join)
def test_no_target(processes: Processes, tmp_path: Path, words: list[str]) -> None:
    """Without a target, a command that needs one says so and ends with 2; the starter set is never implied."""
    code, stdout, stderr = processes.run(*words, directory=tmp_path)
    assert (code, stdout) == (2, "")
    [line] = stderr.splitlines()
    assert "There is no target" in line
    assert "axolotl serve --demo" in line


def test_a_file_without_a_target(cli: CommandLine) -> None:
    """A settings file without a target is named, with what to add to it."""
    cli.write("axolotl.toml", "[http]\nport = 1\n")
    answer = cli("check")
    assert answer.code == 2
    assert f"{cli.directory / 'axolotl.toml'} does not name a target: add target = " in answer.stderr


def test_demo(processes: Processes, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """`serve --demo` serves the starter set, and does not go with a target."""
    server = processes.start("serve", "--demo", directory=cli.directory)
    server.shake_hands()
    assert [tool["name"] for tool in server.ask("tools/list")["tools"]][:5] == STARTER
    server.end()
    monkeypatch.setenv("COLUMNS", "200")
    answer = cli("serve", "--demo", FILE)
    assert answer.code == 2
    assert "leave one of them out" in answer.stderr


@pytest.mark.parametrize("name", ["axolotl.toml", "pyproject.toml"])
def test_parent_directories(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A command in a directory below the settings file does the same as next to it."""
    table = "[tool.axolotl]\n" if name == "pyproject.toml" else ""
    cli.write(name, f'{table}target = "own_tools"\n')
    cli.write("own_tools.py", "from tests.support.containers.command_containers import Polite as Container\n")
    cli.write(".env", "AXOLOTL_LIMITS__TIMEOUT_SECONDS=7\n")
    below = cli.directory / "acme" / "tools"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    shown = json.loads(cli("list", "--json").stdout)["tools"]
    assert [(tool["name"], tool["timeout_seconds"]) for tool in shown] == [("greet", 7)]


def test_paths_of_the_command_line(processes: Processes, tmp_path: Path) -> None:
    """Files on the command line are relative to the directory of the user, also for workers."""
    (tmp_path / "axolotl.toml").write_text('target = "absent:Container"\n')
    below = tmp_path / "acme"
    below.mkdir()
    below.joinpath("own.py").write_text("from tests.support.containers.command_containers import Polite as Container\n")
    below.joinpath("own.env").write_text("AXOLOTL_SERVER__NAME=below\n")
    own = ("own.py", "--env-file", "own.env")
    code, stdout, stderr = processes.run("check", *own, directory=below)
    assert (code, stdout) == (0, "acme/own.py: 1 tool, no problems\n"), stderr
    workers = ("serve", "-t", "http", "-p", "0", "-w", "2", *own)
    server = processes.start(*workers, directory=below)
    assert server.read_until(READY).startswith("below serves 1 tool")


def test_files_of_others(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A settings file in a parent directory is ignored if it belongs to another user, because it names code."""
    cli.write("axolotl.toml", 'target = "tests.support.containers.command_containers:Polite"\n')
    below = cli.directory / "acme"
    below.mkdir()
    os.chown(cli.directory / "axolotl.toml", 4712, -1) if os.geteuid() == 0 else None
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    assert names(cli) == ["greet"]
    monkeypatch.chdir(below)
    answer = cli("list")
    assert answer.code == 2
    assert "There is no target" in answer.stderr


def test_requirements_of_the_demo() -> None:
    """The starter set needs only requirements of the package and of the extra `examples`."""
    extras = [
        package
        for name, packages in PROJECT["optional-dependencies"].items()
        for package in packages
        if name != "examples"
    ]
    blocked = {re.split(r"[\[>=<;]", package)[0].replace("-", "_") for package in extras}
    code = f"import sys; sys.modules.update(dict.fromkeys({blocked | {'jwt', 'opentelemetry'}}))"
    code += "\nfrom axolotl_examples.starter import Container; print(len(Container().tools()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60, capture_output=True)
    assert int(done.stdout) > 0


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
