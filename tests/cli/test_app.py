"""The application: version, help, imports at start, and errors of commands."""

from importlib.metadata import version

import pytest

from tests.cli.conftest import CommandLine
from tests.support.processes import Processes, imported_modules

HEAVY = {"asyncio", "axolotl_core", "axolotl_server", "msgspec", "pydantic", "rich.console", "uvicorn"}


def test_version(cli: CommandLine) -> None:
    """The version is that of the distribution."""
    answer = cli("--version")
    assert (answer.code, answer.stdout) == (0, f"axolotl {version('axolotl-mcp')}\n")


def test_no_arguments(cli: CommandLine) -> None:
    """Without arguments, the help lists every command."""
    answer = cli()
    assert answer.code == 0
    assert all(command in answer.stdout for command in ("serve", "list", "call", "prompt", "read", "inspect", "check"))


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["srve"], "Did you mean 'serve'?"),
        (["explain"], "Did you mean 'policy explain'?"),
        (["verfy"], "Did you mean 'audit verify'?"),
        (["show"], "Did you mean 'tasks show' or 'config show'?"),
        (["policy", "explian"], "Did you mean 'explain'?"),
        (["config", "edit"], "The commands are show, schema."),
        (["nope"], "axolotl -h lists all commands."),
    ],
)
def test_unknown_command(cli: CommandLine, words: list[str], hint: str) -> None:
    """An unknown command is a usage error that suggests the nearest one, also one of a group."""
    answer = cli(*words)
    assert answer.code == 2
    assert f"No such command '{words[-1]}'. {hint}" in answer.stderr


def test_module(processes: Processes) -> None:
    """`python -m axolotl_cli` is the same program."""
    assert processes.run("--version") == (0, f"axolotl {version('axolotl-mcp')}\n", "")


def test_version_imports_little() -> None:
    """`--version` does not import the framework."""
    modules = set(imported_modules("--version"))
    assert not modules & HEAVY
    assert len(modules) < 300


def test_stdio_imports_no_http_and_no_rich() -> None:
    """Serving over stdio imports neither uvicorn nor rich, nor modules that only some tools need."""
    modules = set(imported_modules("serve", "benchmarks.servers.axolotl_add:Container"))
    assert "axolotl_server.transports.stdio" in modules
    assert not modules & {"uvicorn", "rich", "rich.console", "jsonschema_rs", "docstring_parser"}


def test_findings_are_lines(cli: CommandLine) -> None:
    """Every finding is printed on its own line of stderr, without a traceback."""
    cli.write("axolotl.toml", "[http]\nport = -1\npaht = '/x'\n")
    answer = cli("list", "axolotl_examples.starter")
    assert answer.code == 2
    assert answer.stdout == ""
    assert [line.split(":")[0] for line in answer.stderr.splitlines()] == ["Error", "Error"]
    assert "did you mean 'path'?" in answer.stderr


def test_other_errors_are_not_hidden(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other error is a bug and is raised."""
    monkeypatch.setattr("axolotl_cli.target.find_file", lambda directory: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli("list")


def test_cause_is_shown_on_demand(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level debug, the cause of a finding is logged with its traceback."""
    cli.write("broken_cause.py", "1 / 0\n")
    assert "Traceback" not in cli("list", "broken_cause").stderr
    monkeypatch.setenv("AXOLOTL_LOG_LEVEL", "debug")
    assert "Traceback" in cli("list", "broken_cause").stderr
