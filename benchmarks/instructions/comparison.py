"""Comparison of instruction counts with the recorded ones, with the bare ASGI application and with the goals."""

from collections.abc import Mapping
from typing import Final

FLOOR: Final = "bare ASGI application"
STATELESS: Final = "HTTP, stateless"
SESSION: Final = "HTTP, with a session"
STDIO: Final = "stdio"
START: Final = "start over stdio"
PLAIN: Final = "plain"
AUTHORIZATION: Final = "authorization, 10 rules"
READ_ONLY: Final = "audit log, read-only"
TOGETHER: Final = "together"
LAYERS: Final = (
    PLAIN,
    AUTHORIZATION,
    "quota, 2 rules",
    "token, known",
    "metrics page",
    "OTel metrics",
    "OTel traces",
    READ_ONLY,
    "audit log",
    TOGETHER,
)
"""Stateless calls over HTTP without a layer, with one, and with token, authorization, quota, audit log and metrics."""
ALLOWED_GROWTH: Final = 0.05
GOALS: Final = {STATELESS: 0.90, SESSION: 0.90}
"""The highest ratio to the bare ASGI application that a call should have."""
LAYER_GOALS: Final = {TOGETHER: 3.5}
"""The highest ratio to a plain call that the same call with layers should have."""


def compare(counts: Mapping[str, int], recorded: Mapping[str, int]) -> list[str]:
    """Return a line for each count that has grown by more than five percent."""
    return [
        f"{name}: {count:,} instructions are {count / recorded[name] - 1:.1%} more than the recorded {recorded[name]:,}"
        for name, count in counts.items()
        if count > recorded[name] * (1 + ALLOWED_GROWTH)
    ]


def count_lines(counts: Mapping[str, int], recorded: Mapping[str, int]) -> list[str]:
    """Return a line for each count: the recorded one, the ratio to the bare ASGI application, and the goal."""
    return [
        f"{name:24}{count:>14,}  {_recorded(name, recorded):24}{_ratio(name, counts)}".rstrip()
        for name, count in counts.items()
    ]


def _recorded(name: str, recorded: Mapping[str, int]) -> str:
    return f"recorded {recorded[name]:,}" if name in recorded else "not recorded"


def _ratio(name: str, counts: Mapping[str, int]) -> str:
    if name in (FLOOR, START, PLAIN):
        return ""
    other, goal = (PLAIN, LAYER_GOALS.get(name)) if name in LAYERS else (FLOOR, GOALS.get(name))
    ratio = counts[name] / counts[other]
    verdict = "" if goal is None else f", goal ≤ {goal:.2f}: {'ok' if ratio <= goal else 'miss'}"
    return f"{ratio:.2f} × {other}{verdict}"
