"""Judge what the suite wrote: every check counts, and every check that should be there must be there.

The exit code alone proves little: some scenarios of the suite pass against a port where nobody listens.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUCCESS = "SUCCESS"
REMARK = "INFO"
_RESULT_DIRECTORY = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z")
_SHOWN_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Leg:
    """One run of the suite and what a whole one consists of."""

    revision: str
    scenarios: int
    checks: int


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a scenario, as the suite judged it."""

    scenario: str
    id: str
    status: str
    message: str = ""
    details: Any = None

    @property
    def passed(self) -> bool:
        """Whether nothing is to be said about it; a skipped check and a warning do not pass."""
        return self.status in (SUCCESS, REMARK)

    def __str__(self) -> str:
        head = f"{self.scenario}: {self.id}: {self.status}"
        details = "" if self.details is None else json.dumps(self.details, indent=2, ensure_ascii=False)
        return "\n".join(filter(None, (head, _indented(self.message), _indented(details))))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a leg: one line, and everything that is wrong."""

    summary: str
    findings: Sequence[str]


class Unreadable(Exception):
    """A result of the suite that is not as it should be."""


def judge(leg: Leg, results: Path, exit_code: int) -> Verdict:
    """Compare the results of a leg with what a whole one consists of."""
    try:
        scenarios = read_results(results)
    except Unreadable as error:
        return Verdict(f"{leg.revision}: no verdict", [str(error)])
    checks = [check for scenario in scenarios.values() for check in scenario]
    succeeded = sum(check.status == SUCCESS for check in checks)
    findings = [str(check) for check in checks if not check.passed]
    findings += _miscounted("scenarios", len(scenarios), leg.scenarios)
    findings += _miscounted("successful checks", succeeded, leg.checks)
    if exit_code:
        findings.append(f"the suite ended with exit code {exit_code}")
    said = "failed" if findings else "passed"
    counts = f"{len(scenarios)}/{leg.scenarios} scenarios, {succeeded}/{leg.checks} checks"
    return Verdict(f"{leg.revision}: {said}: {counts}", findings)


def read_results(directory: Path) -> dict[str, list[Check]]:
    """Read the checks of every scenario.

    Raises:
        Unreadable: if a file is missing or is not what the suite writes.
    """
    entries = sorted(directory.iterdir()) if directory.is_dir() else []
    scenarios: dict[str, list[Check]] = {}
    for entry in entries:
        match = _RESULT_DIRECTORY.fullmatch(entry.name)
        if match is None or match["scenario"] in scenarios:
            raise Unreadable(f"{entry.name} is no result of a scenario that ran once")
        scenarios[match["scenario"]] = list(_read_checks(match["scenario"], entry / "checks.json"))
    return scenarios


def _read_checks(scenario: str, file: Path) -> Iterator[Check]:
    try:
        for check in json.loads(file.read_bytes()):
            message = str(check.get("errorMessage") or "")
            yield Check(scenario, str(check["id"]), str(check["status"]), message, check.get("details"))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unreadable(f"{scenario}: checks.json cannot be read: {error!r}") from error


def _miscounted(what: str, found: int, expected: int) -> list[str]:
    return [] if found == expected else [f"{found} {what} instead of {expected}"]


def _indented(text: str) -> str:
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return "\n".join(f"    {line}" for line in shown.splitlines())
