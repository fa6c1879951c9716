"""Progress reports and the checks for cancellation and time, between the steps of a search."""

import time
from typing import Final

from axolotl_core import Context

_RESERVED_SHARE: Final = 0.1
_MAX_RESERVED_SECONDS: Final = 1.0
"""The end of the time that is kept for writing the report."""


class OutOfTime(Exception):
    """The deadline of the call is so near that the search must end with what it has found."""


class Progress:
    """Counts steps, stops a search that is cancelled or runs out of time, and reports progress at intervals."""

    def __init__(self, context: Context, interval_seconds: float) -> None:
        self._context = context
        self._interval_seconds = interval_seconds
        self._due = time.monotonic() + interval_seconds
        self._steps = 0
        remaining = context.remaining_seconds
        self._reserved = 0.0 if remaining is None else min(_MAX_RESERVED_SECONDS, _RESERVED_SHARE * remaining)

    def advance(self) -> None:
        """Count a step.

        Raises `ToolCancelled` if the call was cancelled, and `OutOfTime` shortly before its deadline.
        """
        self._context.raise_if_cancelled()
        self._steps += 1
        now = time.monotonic()
        deadline = self._context.deadline
        if deadline is not None and now >= deadline - self._reserved:
            raise OutOfTime
        if now >= self._due:
            self._due = now + self._interval_seconds
            self._context.report_progress(self._steps, message=f"{self._steps:,} files and directories seen")
