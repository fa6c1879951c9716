"""The verdict about the results of the suite: every expected check must be present and must succeed.

The exit code is not enough: some scenarios of the suite pass against a port without a server, and most of them accept
a failed tool as a valid reply.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUCCESS = "SUCCESS"
REMARK = "INFO"
SKIPPED = "SKIPPED"
_FAILS_ON_PURPOSE = "tools-call-error"
_NEVER_RUNS = "tasks-status-notifications"
"""The suite skips its only check, whatever the server does."""
_RESULT_DIRECTORY = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z")
_SHOWN_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Leg:
    """One run of the suite, and the number of checks per scenario that must succeed."""

    revision: str
    """The revision, or `all` for every scenario of the suite, those of extensions included."""
    expected: Mapping[str, int]

    @property
    def checks(self) -> int:
        """The total number of checks that must succeed."""
        return sum(self.expected.values())


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a scenario, with the suite's verdict."""

    scenario: str
    id: str
    status: str
    message: str = ""
    details: Any = None

    @property
    def flawed(self) -> bool:
        """Whether the check reports a problem; warnings and skipped checks count as problems."""
        if self.scenario == _NEVER_RUNS and self.status == SKIPPED:
            return False
        return self.status not in (SUCCESS, REMARK) or (self._tool_failed and self.scenario != _FAILS_ON_PURPOSE)

    @property
    def remark(self) -> str:
        """The message of the suite for a check without a verdict."""
        return str(self._detail("message") or "") if self.status == REMARK else ""

    @property
    def _tool_failed(self) -> bool:
        result = self._detail("result")
        return isinstance(result, dict) and result.get("isError") is True

    def _detail(self, name: str) -> Any:
        return self.details.get(name) if isinstance(self.details, dict) else None

    def __str__(self) -> str:
        head = f"{self.scenario}: {self.id}: {self.status}"
        details = "" if self.details is None else json.dumps(self.details, indent=2, ensure_ascii=False)
        return "\n".join(filter(None, (head, _indented(self.message), _indented(details))))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a leg: one line, and all problems."""

    summary: str
    findings: Sequence[str]


class Unreadable(Exception):
    """A result of the suite is missing or malformed."""


def judge(leg: Leg, results: Path, exit_code: int) -> Verdict:
    """Compare the results of a leg with the expected checks."""
    try:
        scenarios = read_results(results)
    except Unreadable as error:
        return Verdict(f"{leg.revision}: no verdict", [str(error)])
    checks = [check for scenario in scenarios.values() for check in scenario]
    findings = [*(str(check) for check in checks if check.flawed), *_miscounts(leg, scenarios)]
    if exit_code:
        findings.append(f"the suite ended with exit code {exit_code}")
    said = "failed" if findings else "passed"
    counts = f"{len(scenarios)}/{len(leg.expected)} scenarios, {_succeeded(checks)}/{leg.checks} checks"
    return Verdict(f"{leg.revision}: {said}: {counts}", findings)


def read_results(directory: Path) -> dict[str, list[Check]]:
    """Read the checks of every scenario, or raise Unreadable."""
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


def _miscounts(leg: Leg, scenarios: Mapping[str, Sequence[Check]]) -> Iterator[str]:
    for scenario in sorted(leg.expected.keys() | scenarios.keys()):
        found, expected = _succeeded(scenarios.get(scenario, ())), leg.expected.get(scenario)
        if expected is None:
            yield f"{scenario}: is no scenario of this leg"
        elif scenario not in scenarios:
            yield f"{scenario}: did not run"
        elif found != expected:
            remarks = [_indented(f"{check.id}: {check.remark}") for check in scenarios[scenario] if check.remark]
            yield "\n".join([f"{scenario}: {found} checks succeeded instead of {expected}", *remarks])


def _succeeded(checks: Sequence[Check]) -> int:
    return sum(check.status == SUCCESS for check in checks)


def _indented(text: str) -> str:
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return "\n".join(f"    {line}" for line in shown.splitlines())
