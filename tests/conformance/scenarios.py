"""The number of successful checks per scenario and revision."""

from collections.abc import Mapping
from typing import Final

REVISIONS: Final = ("2025-06-18", "2025-11-25", "2026-07-28")

_CHECKS: Final[Mapping[str, tuple[int, int, int]]] = {
    "caching": (0, 0, 8),
    "completion-complete": (2, 2, 2),
    "dns-rebinding-protection": (0, 2, 2),
    "elicitation-sep1034-defaults": (0, 6, 0),
    "elicitation-sep1330-enums": (0, 6, 0),
    "http-custom-header-server-validation": (0, 0, 10),
    "http-header-validation": (0, 0, 14),
    "input-required-result-basic-elicitation": (0, 0, 3),
    "input-required-result-basic-list-roots": (0, 0, 3),
    "input-required-result-basic-sampling": (0, 0, 3),
    "input-required-result-capability-check": (0, 0, 2),
    "input-required-result-ignore-extra-params": (0, 0, 2),
    "input-required-result-missing-input-response": (0, 0, 2),
    "input-required-result-multi-round": (0, 0, 4),
    "input-required-result-multiple-input-requests": (0, 0, 3),
    "input-required-result-non-tool-request": (0, 0, 3),
    "input-required-result-request-state": (0, 0, 3),
    "input-required-result-result-type": (0, 0, 2),
    "input-required-result-tampered-state": (0, 0, 2),
    "input-required-result-unsupported-methods": (0, 0, 2),
    "input-required-result-validate-input": (0, 0, 3),
    "json-schema-2020-12": (0, 8, 8),
    "logging-set-level": (2, 2, 0),
    "ping": (2, 2, 0),
    "prompts-get-embedded-resource": (2, 2, 2),
    "prompts-get-simple": (2, 2, 2),
    "prompts-get-with-args": (2, 2, 2),
    "prompts-get-with-image": (2, 2, 2),
    "prompts-list": (2, 2, 2),
    "resources-list": (2, 2, 2),
    "resources-read-binary": (2, 2, 2),
    "resources-read-text": (2, 2, 2),
    "resources-subscribe": (2, 2, 0),
    "resources-templates-read": (2, 2, 2),
    "resources-unsubscribe": (2, 2, 0),
    "sep-2164-resource-not-found": (0, 0, 4),
    "server-initialize": (3, 3, 0),
    "server-session-lifecycle": (3, 3, 0),
    "server-sse-multiple-streams": (0, 2, 1),
    "server-sse-polling": (0, 3, 0),
    "server-stateless": (0, 0, 30),
    "tools-call-audio": (2, 2, 2),
    "tools-call-elicitation": (2, 2, 0),
    "tools-call-embedded-resource": (2, 2, 2),
    "tools-call-error": (2, 2, 2),
    "tools-call-image": (2, 2, 2),
    "tools-call-mixed-content": (2, 2, 2),
    "tools-call-sampling": (2, 2, 0),
    "tools-call-simple-text": (2, 2, 2),
    "tools-call-with-logging": (2, 2, 0),
    "tools-call-with-progress": (2, 2, 2),
    "tools-list": (2, 3, 4),
}
"""In the order of the revisions above; a scenario without checks is not run."""

EVERYTHING: Final = "all"
"""The leg without a revision: every scenario of the suite, those of extensions included."""
_EXTENSION_CHECKS: Final[Mapping[str, int]] = {
    "sep-2640-skills-directory": 7,
    "sep-2640-skills-enumeration": 32,
    "sep-2640-skills-manifest": 6,
    "tasks-capability-negotiation": 5,
    "tasks-dispatch-and-envelope": 9,
    "tasks-lifecycle": 9,
    "tasks-mrtr-composition": 2,
    "tasks-mrtr-input": 4,
    "tasks-request-headers": 5,
    "tasks-request-state-removal": 3,
    "tasks-required-task-error": 3,
    "tasks-status-notifications": 0,
    "tasks-wire-fields": 4,
}
"""Scenarios that belong to no revision."""


def checks_of(revision: str) -> Mapping[str, int]:
    """Return the number of expected checks per scenario of a revision, or of the run without one.

    Without a revision, the suite runs a scenario in `2025-11-25` if it exists there.
    """
    if revision == EVERYTHING:
        return {**{scenario: later or latest for scenario, (_, later, latest) in _CHECKS.items()}, **_EXTENSION_CHECKS}
    place = REVISIONS.index(revision)
    return {scenario: numbers[place] for scenario, numbers in _CHECKS.items() if numbers[place]}
