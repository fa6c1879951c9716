"""The time as records say it."""

from collections.abc import Callable
from time import gmtime, strftime, time_ns
from typing import Final

__all__ = ["timestamp"]

_NANOSECONDS: Final = 1_000_000_000


def _clock() -> Callable[[], str]:
    """Make a clock that writes the date once a second."""
    known, text = -1, ""

    def now() -> str:
        nonlocal known, text
        nanoseconds = time_ns()
        second = nanoseconds // _NANOSECONDS
        if second != known:
            known, text = second, strftime("%Y-%m-%dT%H:%M:%S.", gmtime(second))
        return f"{text}{nanoseconds % _NANOSECONDS // 1000:06d}Z"

    return now


timestamp: Final = _clock()
"""Gives the time in UTC, as RFC 3339 with microseconds."""
