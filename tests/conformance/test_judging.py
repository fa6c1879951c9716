"""The verdict about a run of the suite: only a whole run without a flaw passes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.judging import Leg, Verdict, judge
from tests.conformance.legs import LEGS
from tests.conformance.server import ROOT

LEG = Leg("2025-11-25", {"a": 1, "b": 2})
GOOD = {"id": "good", "status": "SUCCESS"}


def write(results: Path, scenario: str, checks: Sequence[Any]) -> Path:
    """Write what the suite would write about a scenario."""
    directory = results / f"server-{scenario}-2026-11-16T04-24-10-123Z"
    directory.mkdir()
    file = directory / "checks.json"
    file.write_text(json.dumps(checks))
    return file


def judged(results: Path, *scenarios: Sequence[Any], exit_code: int = 0) -> Verdict:
    """Judge the scenarios a, b and so on with these checks."""
    for name, checks in zip("abc", scenarios, strict=False):
        write(results, name, checks)
    return judge(LEG, results, exit_code)


def test_whole_run(tmp_path: Path) -> None:
    """A run with every scenario and every check passes, and its line tells the numbers."""
    verdict = judged(tmp_path, [GOOD], [GOOD, GOOD])
    assert verdict == Verdict("2025-11-25: passed: 2/2 scenarios, 3/3 checks", [])


def test_remarks(tmp_path: Path) -> None:
    """What the suite only remarks does not count, neither for nor against."""
    assert judged(tmp_path, [GOOD, {"id": "said", "status": "INFO"}], [GOOD, GOOD]).findings == []


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED", "ELSE"])
def test_flawed_check(tmp_path: Path, status: str) -> None:
    """A check that did not succeed is told with its scenario, id, message and details, though the counts are right."""
    flawed = {"id": "flawed", "status": status, "errorMessage": "why", "details": {"got": [1]}}
    verdict = judged(tmp_path, [GOOD], [GOOD, GOOD, flawed])
    assert verdict.summary == "2025-11-25: failed: 2/2 scenarios, 3/3 checks"
    [finding] = verdict.findings
    assert finding.splitlines()[:2] == [f"b: flawed: {status}", "    why"]
    assert '"got"' in finding


def test_missing_check(tmp_path: Path) -> None:
    """A check that is not there fails the run, though nothing else is wrong."""
    verdict = judged(tmp_path, [GOOD], [GOOD])
    assert verdict.summary == "2025-11-25: failed: 2/2 scenarios, 2/3 checks"
    assert verdict.findings == ["b: 1 checks succeeded instead of 2"]


def test_missing_scenario(tmp_path: Path) -> None:
    """A scenario that is not there fails the run."""
    assert judged(tmp_path, [GOOD]).findings == ["b: did not run"]


def test_checks_of_another_scenario(tmp_path: Path) -> None:
    """A check too many in one scenario does not make up for one that is missing in another."""
    verdict = judged(tmp_path, [GOOD, GOOD], [GOOD])
    assert verdict.summary == "2025-11-25: failed: 2/2 scenarios, 3/3 checks"
    assert verdict.findings == ["a: 2 checks succeeded instead of 1", "b: 1 checks succeeded instead of 2"]


def test_more_than_expected(tmp_path: Path) -> None:
    """A run that is larger than it should be is another run, and fails too."""
    assert judged(tmp_path, [GOOD], [GOOD, GOOD], [GOOD]).findings == ["c: is no scenario of this leg"]


def test_remark_in_place_of_a_check(tmp_path: Path) -> None:
    """Where the suite chose not to judge, the finding tells why."""
    remark = {"id": "said", "status": "INFO", "details": {"message": "this is optional"}}
    assert judged(tmp_path, [remark], [GOOD, GOOD]).findings == [
        "a: 0 checks succeeded instead of 1\n    said: this is optional"
    ]


def test_failing_tool(tmp_path: Path) -> None:
    """A tool that failed is found though the suite is content with any answer, save where it fails on purpose."""
    failing = {"id": "good", "status": "SUCCESS", "details": {"result": {"content": [], "isError": True}}}
    write(tmp_path, "a", [failing])
    write(tmp_path, "tools-call-error", [failing])
    [finding] = judge(Leg("2025-11-25", {"a": 1, "tools-call-error": 1}), tmp_path, 0).findings
    assert finding.startswith("a: good: SUCCESS")


def test_exit_code(tmp_path: Path) -> None:
    """An exit code of the suite fails a run whose checks are all good."""
    assert judged(tmp_path, [GOOD], [GOOD, GOOD], exit_code=1).findings == ["the suite ended with exit code 1"]


@pytest.mark.parametrize("leg", LEGS, ids=lambda leg: leg.revision)
def test_nothing_ran(tmp_path: Path, leg: Leg) -> None:
    """No leg passes without results, not even when the suite is content."""
    assert judge(leg, tmp_path, 0).findings
    assert judge(leg, tmp_path / "absent", 0).findings


@pytest.mark.parametrize("leg", LEGS, ids=lambda leg: leg.revision)
def test_documented_numbers(leg: Leg) -> None:
    """The documentation tells what is demanded."""
    page = (ROOT / "docs" / "reference" / "conformance.md").read_text(encoding="utf-8")
    assert f"| `{leg.revision}` | {len(leg.expected)} | {leg.checks} |" in page


@pytest.mark.parametrize("text", ["", "{", "3", "[3]", "[{}]", '[{"id": "good"}]', "\0"])
def test_unreadable_checks(tmp_path: Path, text: str) -> None:
    """A file that the suite did not write as it should gives no verdict, and the finding names the scenario."""
    write(tmp_path, "ping", []).write_text(text)
    verdict = judge(LEG, tmp_path, 0)
    assert verdict.summary == "2025-11-25: no verdict"
    assert verdict.findings[0].startswith("ping: checks.json cannot be read")


def test_missing_file(tmp_path: Path) -> None:
    """A scenario that began and wrote nothing gives no verdict."""
    write(tmp_path, "ping", []).unlink()
    assert judge(LEG, tmp_path, 0).findings[0].startswith("ping: checks.json cannot be read")


def test_left_over_results(tmp_path: Path) -> None:
    """Results of two runs are not taken for one."""
    write(tmp_path, "ping", [GOOD])
    (tmp_path / "server-ping-2026-11-16T05-00-00-000Z").mkdir()
    assert judge(LEG, tmp_path, 0).findings == [
        "server-ping-2026-11-16T05-00-00-000Z is no result of a scenario that ran once"
    ]


def test_long_details(tmp_path: Path) -> None:
    """Details are cut before they bury what matters."""
    [finding] = judged(tmp_path, [GOOD], [GOOD, GOOD, {"id": "a", "status": "FAILURE", "details": "x" * 9999}]).findings
    assert finding.endswith("…")
    assert len(finding) < 3000
