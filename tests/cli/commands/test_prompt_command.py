"""`axolotl prompt`."""

import json

import pytest

from tests.cli.conftest import Answer, CommandLine

SAMPLE = "tests.support.containers.full_container:Container"


def prompt(cli: CommandLine, *words: str) -> Answer:
    return cli("prompt", SAMPLE, *words)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(["dish=soup"], "Praise soup 1 times.\n", id="default"),
        pytest.param(["dish=7", "times=3"], "Praise 7 3 times.\n", id="pairs"),
        pytest.param(['{"dish": "a=b", "times": 3}'], "Praise a=b 3 times.\n", id="object"),
    ],
)
def test_one_message(cli: CommandLine, words: list[str], text: str) -> None:
    """A single message is printed as it is; arguments are text, whatever they look like."""
    answer = prompt(cli, "praise", *words)
    assert (answer.code, answer.stdout, answer.stderr) == (0, text, "")


def test_several_messages(cli: CommandLine) -> None:
    """Several messages are printed with their roles."""
    assert prompt(cli, "talk").stdout == "[user]\nHow are you?\n[assistant]\nFine.\n"


def test_whole_result(cli: CommandLine) -> None:
    """With `--json`, the complete result is printed."""
    result = json.loads(prompt(cli, "praise", "dish=soup", "--json").stdout)
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": "Praise soup 1 times."}}]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(["prase"], "Error: Prompt not found: prase (did you mean 'praise'?) (-32602)", id="unknown"),
        pytest.param(
            ["praise"], "Error: Invalid arguments: dish: required, but missing (-32602)", id="missing-argument"
        ),
        pytest.param(["sulk", "--answer", 'ask-1={"sure": true}'], "Error: Not today. (-32603)", id="failing"),
    ],
)
def test_refused(cli: CommandLine, words: list[str], line: str) -> None:
    """A refused request gives exit code 3 and the reason."""
    answer = prompt(cli, *words)
    assert (answer.code, answer.stdout, answer.stderr) == (3, "", f"{line}\n")


def test_unreadable_arguments(cli: CommandLine) -> None:
    """A word that is neither a pair nor an object is a usage error."""
    answer = prompt(cli, "praise", "soup")
    assert (answer.code, answer.stderr) == (2, "Error: 'soup' is not an argument: write key=value or a JSON object\n")


def test_toolset(cli: CommandLine) -> None:
    """Tool sets can be selected."""
    answer = cli("prompt", "tests.support.containers.full_container:Sets", "praise", "dish=soup", "--toolset", "guests")
    assert answer.stdout == "Praise soup 1 times.\n"
