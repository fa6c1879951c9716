"""`axolotl list`."""

import json

from tests.cli.conftest import CommandLine


def test_table(cli: CommandLine) -> None:
    """The table has a line for each tool, with its tool set, execution and timeout."""
    answer = cli("list", "tests.support.containers.command_containers:Sets")
    lines = [line.split() for line in answer.stdout.splitlines()]
    assert answer.code == 0
    assert ["greet", "Greet", "someone.", "polite", "loop", "30", "s"] in lines
    assert ["double", "Double", "a", "number.", "numeric", "loop", "30", "s"] in lines
    assert lines[-1] == ["2", "tools"]


def test_table_shows_effective_limits(cli: CommandLine) -> None:
    """Limits are the effective ones."""
    cli.write("axolotl.toml", "[tools.greet]\ntimeout_seconds = 0.5\n")
    lines = [
        line.split()
        for line in cli("list", "tests.support.containers.command_containers:Container").stdout.splitlines()
    ]
    assert ["greet", "Greet", "someone.", "–", "loop", "0.5", "s"] in lines
    assert ["complain", "Answer", "with", "an", "error.", "–", "loop", "5", "s"] in lines


def test_empty(cli: CommandLine) -> None:
    """A server without tools has a summary only."""
    assert cli("list", "tests.support.containers.command_containers:Empty").stdout == "0 tools\n"


def test_json(cli: CommandLine) -> None:
    """`--json` prints the same."""
    answer = cli("list", "tests.support.containers.command_containers:Polite", "--json")
    assert json.loads(answer.stdout) == {
        "tools": [
            {
                "name": "greet",
                "title": None,
                "description": "Greet someone.",
                "toolset": None,
                "execution": "loop",
                "timeout_seconds": 30.0,
            }
        ],
        "prompts": [],
        "resources": [],
        "templates": [],
        "skills": [],
    }


def test_every_kind(cli: CommandLine) -> None:
    """Prompts, resources and templates have their own tables, and the last line counts all."""
    answer = cli("list", "tests.support.containers.full_container:Container")
    lines = [" ".join(line.split()) for line in answer.stdout.splitlines()]
    assert answer.code == 0
    assert "praise Praise a dish. dish, times? – thread 30 s" in lines
    assert "talk Begin a conversation. – – thread 30 s" in lines
    assert "ui://menu The menu. text/html;profile=mcp-app – thread 30 s" in lines
    assert "dishes://{name}{?lang} A dish of the menu, with its picture. – – thread 30 s" in lines
    assert lines[-1] == "5 tools, 3 prompts, 2 resources, 1 template"


def test_no_tools(cli: CommandLine) -> None:
    """A kind without features has no table."""
    answer = cli("list", "tests.support.containers.full_container:Sets")
    assert answer.stdout.splitlines()[0].split() == [
        "Prompt",
        "Description",
        "Arguments",
        "Tool",
        "set",
        "Runs",
        "in",
        "Timeout",
    ]
    assert " guests " in answer.stdout
    assert answer.stdout.splitlines()[-1] == "1 prompt"


def test_every_kind_as_json(cli: CommandLine) -> None:
    """`--json` prints all kinds."""
    offer = json.loads(cli("list", "tests.support.containers.full_container:Container", "--json").stdout)
    assert [tool["name"] for tool in offer["tools"]] == ["order", "confirm", "pay", "think", "simmer"]
    assert offer["prompts"][0]["arguments"] == [
        {"name": "dish", "required": True},
        {"name": "times", "required": False},
    ]
    assert [(one["uri"], one["mime_type"]) for one in offer["resources"]] == [
        ("ui://menu", "text/html;profile=mcp-app"),
        ("pictures://soup", "image/png"),
    ]
    [template] = offer["templates"]
    assert (template["uri_template"], template["title"]) == ("dishes://{name}{?lang}", "A dish")
