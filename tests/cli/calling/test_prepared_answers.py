"""Answers to questions on the command line."""

import pytest

from tests.cli.conftest import Answer, CommandLine

SAMPLE = "tests.support.containers.full_container:Container"
LOG = 'info kitchen: {"table": 3}\n'


def call(cli: CommandLine, *words: str) -> Answer:
    return cli("call", SAMPLE, *words)


def test_all_answers(cli: CommandLine) -> None:
    """Each question gets the answer with its key; log messages of each run are printed meanwhile."""
    meal = '{"size": "l", "extras": ["oil"], "pieces": 2, "day": "2026-02-03"}'
    answer = call(cli, "order", "table=3", "--answer", f"ask-1={meal}", "--answer", 'sure={"sure": true}')
    assert answer.code == 0
    assert answer.stdout == (
        '{"size":"l","extras":["oil"],"pieces":2,"day":"2026-02-03","hot":false,"note":null} True\n'
    )
    assert answer.stderr == 3 * LOG


@pytest.mark.parametrize(
    ("action", "text"),
    [("decline", "The user declined to answer\n"), ("cancel", "The user cancelled the question\n")],
)
def test_no(cli: CommandLine, action: str, text: str) -> None:
    """A question can be declined or cancelled; the tool decides what that means."""
    answer = call(cli, "confirm", "--answer", f"ask-1={action}")
    assert (answer.code, answer.stdout, answer.stderr) == (1, "", text)


def test_page(cli: CommandLine) -> None:
    """A question to open a page can be accepted."""
    assert call(cli, "pay", "--answer", "ask-1=accept").stdout == "paid\n"


@pytest.mark.parametrize(
    ("sample", "roots", "text"),
    [
        pytest.param("a soup", "/srv", "a soup file:///srv\n", id="plain"),
        pytest.param('"7"', '["/srv", "file:///home"]', "7 file:///srv file:///home\n", id="json"),
        pytest.param("7", '{"roots": [{"uri": "file:///x"}]}', "7 file:///x\n", id="whole-roots"),
        pytest.param(
            '{"role": "assistant", "content": {"type": "text", "text": "tea"}, "model": "m"}',
            "/srv",
            "tea file:///srv\n",
            id="whole-sample",
        ),
    ],
)
def test_models_and_roots(cli: CommandLine, sample: str, roots: str, text: str) -> None:
    """The answer of a model is text or a complete result; roots are directories, URIs or a complete result."""
    answer = call(cli, "think", "--answer", f"sample-1={sample}", "--answer", f"roots-1={roots}")
    assert (answer.code, answer.stdout) == (0, text)


@pytest.mark.parametrize(
    ("tool", "finding"),
    [
        pytest.param(
            "confirm",
            "The question 'ask-1' (Really?) has no answer, and stdin is not a terminal; "
            "answer for example with --answer 'ask-1={\"sure\": true}', or with --answer ask-1=decline",
            id="form",
        ),
        pytest.param(
            "pay",
            "The question 'ask-1' (Please pay) has no answer, and stdin is not a terminal; "
            "answer with --answer ask-1=accept, or =decline",
            id="page",
        ),
        pytest.param(
            "think",
            "The question 'sample-1' to a model has no answer, and stdin is not a terminal; "
            "answer with --answer sample-1=TEXT",
            id="model",
        ),
    ],
)
def test_no_answer(cli: CommandLine, tool: str, finding: str) -> None:
    """Without a terminal, the error for a question without an answer says how to give one."""
    answer = call(cli, tool)
    assert (answer.code, answer.stdout, answer.stderr) == (2, "", f"Error: {finding}\n")


def test_no_roots(cli: CommandLine) -> None:
    """The same goes for roots."""
    answer = call(cli, "think", "--answer", "sample-1=x")
    assert answer.code == 2
    assert answer.stderr.endswith("not a terminal; answer with --answer roots-1=DIRECTORY\n")


def test_suggested_answer(cli: CommandLine) -> None:
    """The answer that the error suggests is accepted."""
    suggestion = call(cli, "order", "table=3").stderr.partition("--answer '")[2].partition("'")[0]
    answer = call(cli, "order", "table=3", "--answer", suggestion, "--answer", 'sure={"sure": false}')
    assert answer.code == 0, answer.stderr


def test_unaccepted_answer(cli: CommandLine) -> None:
    """An answer that the server does not accept is an error, and not sent again forever."""
    answer = call(cli, "confirm", "--answer", 'ask-1={"sure": "maybe"}')
    assert answer.code == 2
    assert answer.stderr.startswith(
        "Error: The answer to 'ask-1' was not accepted; answer for example with --answer 'ask-1="
    )


@pytest.mark.parametrize("text", ["maybe", "5", "[]"])
def test_unreadable_answer(cli: CommandLine, text: str) -> None:
    """A form is answered with an object, or with one of three words."""
    answer = call(cli, "confirm", "--answer", f"ask-1={text}")
    assert answer.code == 2
    assert answer.stderr.startswith("Error: The answer to 'ask-1' is invalid; answer for example with")


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        (["--answer", "ask-1"], "'ask-1' is not an answer: write --answer key=JSON"),
        (["--answer", "=5"], "'=5' is not an answer: write --answer key=JSON"),
        (["--answer", "a=1", "--answer", "a=2"], "The answer to 'a' is given twice"),
    ],
)
def test_wrong_words(cli: CommandLine, words: list[str], finding: str) -> None:
    """Words that are not answers are usage errors, before anything starts."""
    answer = cli("call", "absent_module", "confirm", *words)
    assert (answer.code, answer.stderr) == (2, f"Error: {finding}\n")


@pytest.mark.parametrize("name", ["simmer", "SIMMER"])
def test_task(cli: CommandLine, name: str) -> None:
    """A tool that requires a task is followed to its end, and asks questions like any other."""
    answer = call(cli, name, "--answer", 'ask-1={"sure": true}')
    assert (answer.code, answer.stdout, answer.stderr) == (0, "simmered: True\n", "")


def test_task_without_answer(cli: CommandLine) -> None:
    """A task whose question has no answer ends with the command."""
    answer = call(cli, "simmer")
    assert answer.code == 2
    assert answer.stderr.startswith("Error: The question 'ask-1' (Long enough?) has no answer")


def test_unasked(cli: CommandLine) -> None:
    """An answer that is not used is reported, because its key may be misspelled."""
    answer = call(cli, "pay", "--answer", "ask-1=accept", "--answer", "aks-1=accept")
    assert (answer.code, answer.stdout) == (0, "paid\n")
    assert answer.stderr == "The question 'aks-1' was not asked; its answer was not used\n"
