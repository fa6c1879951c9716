"""Help texts."""

import re

import pytest
from typer.main import get_command

from axolotl_cli.app import app
from tests.cli.conftest import CommandLine

COMMANDS = list(get_command(app).commands)  # type: ignore[attr-defined]
GROUPED = [
    f"{name} {inner}"
    for name, command in get_command(app).commands.items()  # type: ignore[attr-defined]
    for inner in getattr(command, "commands", ())
]


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPED])
def test_help_of_commands(cli: CommandLine, command: str) -> None:
    """`axolotl help COMMAND` shows what `axolotl COMMAND --help` shows, and flags have no type."""
    shown = cli("help", *command.split())
    assert shown.code == 0
    assert f"Usage: axolotl {command} " in shown.stdout
    assert shown.stdout.strip() == cli(*command.split(), "--help").stdout.strip()
    assert "<bool>" not in shown.stdout


def test_help_of_all(cli: CommandLine) -> None:
    """`axolotl help` lists all commands, as `axolotl --help` does."""
    assert cli("help").stdout.strip() == cli("--help").stdout.strip()
    assert "<bool>" not in cli("--help").stdout


def test_help_of_nothing(cli: CommandLine) -> None:
    """An unknown command is an error that says how to find the others."""
    for words in (["nope"], ["call", "nope"]):
        answer = cli("help", *words)
        assert answer.code == 2
        assert f"No such command '{' '.join(words)}'. axolotl help lists all commands." in answer.stderr


def test_help_of_a_misspelled_command(cli: CommandLine) -> None:
    """The nearest command is suggested, also in a group."""
    assert "Did you mean 'check'?" in cli("help", "chek").stderr
    assert "Did you mean 'explain'?" in cli("help", "policy", "explian").stderr
    assert "Did you mean 'policy explain'?" in cli("help", "explain").stderr


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPED])
def test_help_of_a_narrow_terminal(cli: CommandLine, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 columns, nothing is cut off, and the values of an option are on its line."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli(*command.split(), "--help").stdout.splitlines()
    assert not [line for line in lines if "…" in line]
    broken = re.compile(r"<[^>]*( {2}|│$)")
    assert not [line for line in lines if broken.search(line.replace(">=", "").replace("<=", ""))]
