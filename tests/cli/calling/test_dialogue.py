"""Questions at a real terminal."""

import signal
import sys

import pytest

from axolotl_cli.calling.dialogue import Dialogue
from axolotl_server.client.replies import DECLINE, Question
from tests.support.commands import ROOT
from tests.support.processes import Processes

SAMPLE = "tests.support.containers.full_container:Container"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals")


def call(processes: Processes, *words: str, typed: str) -> tuple[int, str, list[str]]:
    """Call a tool, type all input ahead, and return the exit code, stdout and the lines of stderr."""
    server = processes.start_in_terminal("call", SAMPLE, *words)
    server.type(typed)
    code, stdout, stderr = server.end()
    return code, stdout, stderr.splitlines()


def test_form(processes: Processes) -> None:
    """Fields are asked one by one, and defaults need no input."""
    typed = "large\nsalt, oil\n2\n2026-02-03\n\nfine\nyes\n"
    code, stdout, lines = call(processes, "order", "table=3", typed=typed)
    assert code == 0, lines
    assert stdout == (
        '{"size":"l","extras":["salt","oil"],"pieces":2,"day":"2026-02-03","hot":false,"note":"fine"} True\n'
    )
    assert lines == [
        'info kitchen: {"table": 3}',
        "What for table 3?",
        "Press Ctrl-D to decline.",
        "  How much.",
        '  size (s = Small, l = Large) ["s"]:   extras (any of salt, oil) [[]]:   pieces (whole number):   '
        'day (date):   hot (yes or no) [false]:   note (text) [optional]: info kitchen: {"table": 3}',
        "Is that all?",
        "Press Ctrl-D to decline.",
        '  sure (yes or no): info kitchen: {"table": 3}',
    ]


@pytest.mark.parametrize("mistake", ["9", "many"])
def test_an_invalid_field(processes: Processes, mistake: str) -> None:
    """The server refuses an invalid value, and the form is asked again."""
    typed = f"\n\n{mistake}\n2026-02-03\n\n\n\n\n2\n2026-02-03\n\n\nyes\n"
    code, stdout, lines = call(processes, "order", "table=3", typed=typed)
    assert (code, '"pieces":2' in stdout) == (0, True)
    assert lines.count("The answer was not accepted. Try again.") == 1


def test_asked_again(processes: Processes) -> None:
    """If the server does not accept an answer, it is asked again, with a note."""
    first, second = "\n\n1\n2026-02-03\n\nNOT LIKE THIS\n", "\n\n1\n2026-02-03\n\n\n"
    code, stdout, lines = call(processes, "order", "table=3", typed=f"{first}{second}no\n")
    assert code == 0
    assert stdout.endswith('"note":null} False\n')
    assert lines.count("The answer was not accepted. Try again.") == 1
    assert lines.count("What for table 3?") == 2


def test_decline(processes: Processes) -> None:
    """Ctrl-D declines, and the tool's result is printed."""
    code, stdout, lines = call(processes, "confirm", typed="\x04")
    assert (code, stdout, lines[-1]) == (1, "", "The user declined to answer")


def test_page(processes: Processes) -> None:
    """The URL of a page is shown, and Enter accepts."""
    code, stdout, lines = call(processes, "pay", typed="\n")
    assert (code, stdout) == (0, "paid\n")
    assert lines[:2] == ["Please pay", "  https://example.com/pay"]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "ssh://host", " https://example.com", ""])
async def test_what_is_no_page(capsys: pytest.CaptureFixture[str], url: str) -> None:
    """Only pages of the web are shown as such; others are declined without a question."""
    params = {"mode": "url", "message": "Please pay", "url": url, "elicitationId": "1"}
    assert await Dialogue().answer(Question("ask-1", "elicitation/create", params)) == DECLINE
    problem = f"The server wants {url} opened, which is not a web page: declined"
    assert capsys.readouterr().err == f"Please pay\n  {problem}\n"


def test_model_and_roots(processes: Processes) -> None:
    """A person can answer as the model; the default root is the current directory."""
    code, stdout, lines = call(processes, "think", typed="a soup\n\n")
    assert (code, stdout) == (0, f"a soup {ROOT.as_uri()}\n")
    assert lines[:3] == ["The server asks a model:", "  system: Be brief", "  user: What is best?"]


def test_model_without_answer(processes: Processes) -> None:
    """A question to a model cannot be declined: the command fails."""
    code, stdout, lines = call(processes, "think", typed="\x04")
    assert (code, stdout, lines[-1]) == (2, "", "Error: The question 'sample-1' was not answered")


def test_given_answers_are_not_asked(processes: Processes) -> None:
    """Questions that the command line answers are not asked."""
    meal = '{"pieces": 2, "day": "2026-02-03"}'
    code, stdout, lines = call(processes, "order", "table=3", "--answer", f"ask-1={meal}", typed="y\n")
    assert code == 0
    assert stdout.endswith("True\n")
    assert "What for table 3?" not in lines


def test_interrupt(processes: Processes) -> None:
    """Ctrl-C ends the command while it waits, without a traceback."""
    server = processes.start_in_terminal("call", SAMPLE, "confirm")
    server.read_until("Ctrl-D to decline")
    server.signal(signal.SIGINT)
    code, stdout, stderr = server.end()
    assert (code, stdout) == (130, "")
    assert "Traceback" not in stderr
    assert "did not end" not in stderr
