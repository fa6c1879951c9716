"""Help texts."""

import re

import pytest
from typer.main import get_command

from axolotl_cli.app import _SUMMARIES, app
from tests.cli.conftest import CommandLine

COMMANDS = list(get_command(app).commands)  # type: ignore[attr-defined]
GROUPED = [
    f"{name} {inner}"
    for name, command in get_command(app).commands.items()  # type: ignore[attr-defined]
    for inner in getattr(command, "commands", ())
]


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPED])
def test_help_of_commands(cli: CommandLine, command: str) -> None:
    """`axolotl COMMAND -h` shows what `axolotl COMMAND --help` shows, and flags have no type."""
    shown = cli(*command.split(), "-h")
    assert shown.code == 0
    assert f"{command} " in shown.stdout
    assert shown.stdout == cli(*command.split(), "--help").stdout
    assert "<bool>" not in shown.stdout


def test_a_misspelled_command(cli: CommandLine) -> None:
    """The nearest command is suggested, also in a group."""
    assert "Did you mean 'check'?" in cli("chek").stderr
    assert "Did you mean 'explain'?" in cli("policy", "explian").stderr
    assert "Did you mean 'policy explain'?" in cli("explain").stderr


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPED])
def test_help_of_a_narrow_terminal(cli: CommandLine, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 columns, nothing is cut off, and the values of an option are on its line."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli(*command.split(), "--help").stdout.splitlines()
    assert not [line for line in lines if "…" in line]
    broken = re.compile(r"<[^>]*( {2}|│$)")
    assert not [line for line in lines if broken.search(line.replace(">=", "").replace("<=", ""))]


def test_the_list_of_commands(cli: CommandLine) -> None:
    """The help of all commands has the first line of each, without importing them."""
    own = {name: (command.help or "").split("\n\n")[0] for name, command in get_command(app).commands.items()}  # type: ignore[attr-defined]
    assert own == _SUMMARIES
    shown = " ".join(cli("-h").stdout.replace("│", " ").split())
    assert all(f"{name} {text}" in shown for name, text in _SUMMARIES.items())
