"""Comparison of instruction counts with the recorded ones, with the bare ASGI application and with the goals."""

from collections.abc import Mapping
from typing import Final

FLOOR: Final = "bare ASGI application"
STATELESS: Final = "HTTP, stateless"
SESSION: Final = "HTTP, with a session"
STDIO: Final = "stdio"
START: Final = "start over stdio"
ALLOWED_GROWTH: Final = 0.05
GOALS: Final = {STATELESS: 0.65, SESSION: 0.70}
"""The highest ratio to the bare ASGI application that a call should have."""


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
        f"{name:24}{count:>14,}  {_recorded(name, recorded):24}{_ratio(name, count, counts[FLOOR])}".rstrip()
        for name, count in counts.items()
    ]


def _recorded(name: str, recorded: Mapping[str, int]) -> str:
    return f"recorded {recorded[name]:,}" if name in recorded else "not recorded"


def _ratio(name: str, count: int, floor: int) -> str:
    if name in (FLOOR, START):
        return ""
    goal = GOALS.get(name)
    verdict = "" if goal is None else f", goal ≤ {goal:.2f}: {'ok' if count / floor <= goal else 'miss'}"
    return f"{count / floor:.2f} × {FLOOR}{verdict}"
