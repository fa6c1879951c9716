"""The verdict about a run of the suite: only a complete run without problems passes."""

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
    """Write the results of a scenario like the suite does."""
    directory = results / f"server-{scenario}-2026-11-16T04-24-10-123Z"
    directory.mkdir()
    file = directory / "checks.json"
    file.write_text(json.dumps(checks))
    return file


def judged(results: Path, *scenarios: Sequence[Any], exit_code: int = 0) -> Verdict:
    """Judge scenarios named a, b and so on with these checks."""
    for name, checks in zip("abc", scenarios, strict=False):
        write(results, name, checks)
    return judge(LEG, results, exit_code)


def test_whole_run(tmp_path: Path) -> None:
    """A run with all scenarios and checks passes, and its line shows the numbers."""
    verdict = judged(tmp_path, [GOOD], [GOOD, GOOD])
    assert verdict == Verdict("2025-11-25: passed: 2/2 scenarios, 3/3 checks", [])


def test_remarks(tmp_path: Path) -> None:
    """Remarks of the suite do not count as successes or problems."""
    assert judged(tmp_path, [GOOD, {"id": "said", "status": "INFO"}], [GOOD, GOOD]).findings == []


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED", "ELSE"])
def test_flawed_check(tmp_path: Path, status: str) -> None:
    """A failed check is reported with its scenario, id, message and details."""
    flawed = {"id": "flawed", "status": status, "errorMessage": "why", "details": {"got": [1]}}
    verdict = judged(tmp_path, [GOOD], [GOOD, GOOD, flawed])
    assert verdict.summary == "2025-11-25: failed: 2/2 scenarios, 3/3 checks"
    [finding] = verdict.findings
    assert finding.splitlines()[:2] == [f"b: flawed: {status}", "    why"]
    assert '"got"' in finding


def test_check_that_never_runs(tmp_path: Path) -> None:
    """The check that the suite skips for every server may be skipped, but not fail."""
    leg, checks = Leg("all", {"tasks-status-notifications": 0}), [{"id": "none", "status": "SKIPPED"}]
    file = write(tmp_path, "tasks-status-notifications", checks)
    assert judge(leg, tmp_path, 0) == Verdict("all: passed: 1/1 scenarios, 0/0 checks", [])
    file.write_text(json.dumps([{"id": "none", "status": "FAILURE"}]))
    assert len(judge(leg, tmp_path, 0).findings) == 1


def test_missing_check(tmp_path: Path) -> None:
    """A missing check fails the run."""
    verdict = judged(tmp_path, [GOOD], [GOOD])
    assert verdict.summary == "2025-11-25: failed: 2/2 scenarios, 2/3 checks"
    assert verdict.findings == ["b: 1 checks succeeded instead of 2"]


def test_missing_scenario(tmp_path: Path) -> None:
    """A missing scenario fails the run."""
    assert judged(tmp_path, [GOOD]).findings == ["b: did not run"]


def test_checks_of_another_scenario(tmp_path: Path) -> None:
    """An extra check in one scenario does not make up for a missing one in another."""
    verdict = judged(tmp_path, [GOOD, GOOD], [GOOD])
    assert verdict.summary == "2025-11-25: failed: 2/2 scenarios, 3/3 checks"
    assert verdict.findings == ["a: 2 checks succeeded instead of 1", "b: 1 checks succeeded instead of 2"]


def test_more_than_expected(tmp_path: Path) -> None:
    """A run with more checks than expected fails."""
    assert judged(tmp_path, [GOOD], [GOOD, GOOD], [GOOD]).findings == ["c: is no scenario of this leg"]


def test_remark_in_place_of_a_check(tmp_path: Path) -> None:
    """If the suite did not judge a check, the problem includes its remark."""
    remark = {"id": "said", "status": "INFO", "details": {"message": "this is optional"}}
    assert judged(tmp_path, [remark], [GOOD, GOOD]).findings == [
        "a: 0 checks succeeded instead of 1\n    said: this is optional"
    ]


def test_failing_tool(tmp_path: Path) -> None:
    """A failed tool is a problem even if the suite accepts it, unless the scenario expects the failure."""
    failing = {"id": "good", "status": "SUCCESS", "details": {"result": {"content": [], "isError": True}}}
    write(tmp_path, "a", [failing])
    write(tmp_path, "tools-call-error", [failing])
    [finding] = judge(Leg("2025-11-25", {"a": 1, "tools-call-error": 1}), tmp_path, 0).findings
    assert finding.startswith("a: good: SUCCESS")


def test_exit_code(tmp_path: Path) -> None:
    """A nonzero exit code of the suite fails the run."""
    assert judged(tmp_path, [GOOD], [GOOD, GOOD], exit_code=1).findings == ["the suite ended with exit code 1"]


@pytest.mark.parametrize("leg", LEGS, ids=lambda leg: leg.revision)
def test_nothing_ran(tmp_path: Path, leg: Leg) -> None:
    """A leg without results fails, even if the suite reports success."""
    assert judge(leg, tmp_path, 0).findings
    assert judge(leg, tmp_path / "absent", 0).findings


@pytest.mark.parametrize("leg", LEGS, ids=lambda leg: leg.revision)
def test_documented_numbers(leg: Leg) -> None:
    """The documentation shows the required numbers."""
    page = (ROOT / "docs" / "reference" / "conformance.md").read_text(encoding="utf-8")
    assert f"| `{leg.revision}` | {len(leg.expected)} | {leg.checks} |" in page


@pytest.mark.parametrize("text", ["", "{", "3", "[3]", "[{}]", '[{"id": "good"}]', "\0"])
def test_unreadable_checks(tmp_path: Path, text: str) -> None:
    """A malformed file fails the run, and the problem names the scenario."""
    write(tmp_path, "ping", []).write_text(text)
    verdict = judge(LEG, tmp_path, 0)
    assert verdict.summary == "2025-11-25: no verdict"
    assert verdict.findings[0].startswith("ping: checks.json cannot be read")


def test_missing_file(tmp_path: Path) -> None:
    """A scenario without a result file fails the run."""
    write(tmp_path, "ping", []).unlink()
    assert judge(LEG, tmp_path, 0).findings[0].startswith("ping: checks.json cannot be read")


def test_left_over_results(tmp_path: Path) -> None:
    """Results of two runs are not mixed."""
    write(tmp_path, "ping", [GOOD])
    (tmp_path / "server-ping-2026-11-16T05-00-00-000Z").mkdir()
    assert judge(LEG, tmp_path, 0).findings == [
        "server-ping-2026-11-16T05-00-00-000Z is no result of a scenario that ran once"
    ]


def test_long_details(tmp_path: Path) -> None:
    """Long details are truncated."""
    [finding] = judged(tmp_path, [GOOD], [GOOD, GOOD, {"id": "a", "status": "FAILURE", "details": "x" * 9999}]).findings
    assert finding.endswith("…")
    assert len(finding) < 3000
