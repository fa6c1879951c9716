"""Progress reports and the check for cancellation, between the steps of a search."""

import time

from axolotl_core import ToolContext


class Progress:
    """Counts steps, stops a cancelled search, and reports progress at intervals."""

    def __init__(self, context: ToolContext, interval_seconds: float) -> None:
        self._context = context
        self._interval_seconds = interval_seconds
        self._due = time.monotonic() + interval_seconds
        self._steps = 0

    def advance(self) -> None:
        """Count a step. Raises `ToolCancelled` if the call was cancelled."""
        self._context.raise_if_cancelled()
        self._steps += 1
        now = time.monotonic()
        if now >= self._due:
            self._due = now + self._interval_seconds
            self._context.report_progress(self._steps, message=f"{self._steps:,} files and directories seen")
