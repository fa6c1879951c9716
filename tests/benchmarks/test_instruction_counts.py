"""The comparison of instruction counts with the recorded ones."""

import json

import pytest

from benchmarks.instructions import __main__ as command
from benchmarks.instructions.comparison import FLOOR, START, STATELESS, compare, count_lines
from benchmarks.instructions.counted_calls import SCENARIOS

RECORDED = {FLOOR: 100_000, STATELESS: 60_000, START: 1_000_000}


def test_growth_up_to_five_percent_is_accepted() -> None:
    """A count may grow by five percent, or shrink."""
    assert compare({FLOOR: 105_000, STATELESS: 63_000, START: 900_000}, RECORDED) == []


def test_more_growth_is_reported() -> None:
    """The line names the scenario, both counts and the growth."""
    [line] = compare({FLOOR: 100_000, STATELESS: 63_001, START: 1_000_000}, RECORDED)
    assert line == "HTTP, stateless: 63,001 instructions are 5.0% more than the recorded 60,000"


def test_counts_are_shown_with_their_ratio_and_goal() -> None:
    """A call is compared with the bare ASGI application; the start is not."""
    lines = count_lines({FLOOR: 100_000, STATELESS: 66_000, START: 1_000_000}, {STATELESS: 60_000})
    assert [" ".join(line.split()) for line in lines] == [
        "bare ASGI application 100,000 not recorded",
        "HTTP, stateless 66,000 recorded 60,000 0.66 × bare ASGI application, goal ≤ 0.90: ok",
        "start over stdio 1,000,000 not recorded",
    ]


def test_every_recorded_version_has_all_counts() -> None:
    """The counts in the repository belong to the scenarios of today."""
    for counts in json.loads(command.RECORD.read_text()).values():
        assert set(counts) == {*SCENARIOS, START}


@pytest.mark.parametrize(("environment", "code"), [("1", 2), ("", 0)])
def test_without_valgrind(
    environment: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In continuous integration it is an error that valgrind is missing; elsewhere a message is printed."""
    monkeypatch.setenv("CI", environment)
    monkeypatch.setenv("PATH", "")
    assert command.main([]) == code
    assert capsys.readouterr().err == "Instructions are not counted: install valgrind.\n"


def test_a_version_without_recorded_counts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The counts are shown, and a message says that they were not compared."""
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr("platform.python_version", lambda: "3.99.0")
    monkeypatch.setattr(command, "count_calls", lambda directory: dict.fromkeys(SCENARIOS, 1000))
    monkeypatch.setattr(command, "count_start", lambda: 1000)
    assert command.main([]) == 0
    output = capsys.readouterr()
    assert output.out.count("not recorded") == len(SCENARIOS) + 1
    assert output.err == (
        "The counts are not compared: recorded.json has none for Python 3.99.0. "
        "Record them without your change, with python -m benchmarks.instructions --record, and compare then.\n"
    )
