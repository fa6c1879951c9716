"""`axolotl list`."""

import json

from tests.cli.conftest import CommandLine


def test_table(cli: CommandLine) -> None:
    """People get a line a tool, whole, with its tool set, where it runs and its timeout."""
    answer = cli("list", "tests.cli.servers:Sets")
    lines = [line.split() for line in answer.stdout.splitlines()]
    assert answer.code == 0
    assert ["greet", "Greet", "someone.", "polite", "loop", "30", "s"] in lines
    assert ["double", "Double", "a", "number.", "numeric", "loop", "30", "s"] in lines
    assert lines[-1] == ["2", "tools"]


def test_table_shows_what_holds(cli: CommandLine) -> None:
    """Limits are those after everything was weighed."""
    cli.write("axolotl.toml", "[tools.greet]\ntimeout_seconds = 0.5\nexecution = 'thread'\n")
    lines = [line.split() for line in cli("list", "tests.cli.servers:Container").stdout.splitlines()]
    assert ["greet", "Greet", "someone.", "–", "thread", "0.5", "s"] in lines
    assert ["complain", "Answer", "with", "an", "error.", "–", "loop", "5", "s"] in lines


def test_empty(cli: CommandLine) -> None:
    """A server without tools says so."""
    assert cli("list", "tests.cli.servers:Empty").stdout == "0 tools\n"


def test_json(cli: CommandLine) -> None:
    """Programs get the same as JSON."""
    answer = cli("list", "tests.cli.servers:Polite", "--json")
    assert json.loads(answer.stdout) == [
        {
            "name": "greet",
            "title": None,
            "description": "Greet someone.",
            "toolset": None,
            "execution": "loop",
            "timeout_seconds": 30.0,
        }
    ]
