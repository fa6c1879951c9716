"""The pulse of a search: between two steps it looks whether to go on, and tells how far it is."""

import time

from axolotl_core import ToolContext


class Pulse:
    """Counts steps; it stops a search that nobody waits for, and reports progress now and then."""

    def __init__(self, context: ToolContext, interval_seconds: float) -> None:
        self._context = context
        self._interval_seconds = interval_seconds
        self._due = time.monotonic() + interval_seconds
        self._steps = 0

    def beat(self) -> None:
        """Take a step.

        Raises:
            ToolCancelled: if the call was cancelled.
        """
        self._context.raise_if_cancelled()
        self._steps += 1
        now = time.monotonic()
        if now >= self._due:
            self._due = now + self._interval_seconds
            self._context.report_progress(self._steps, message=f"{self._steps:,} files and directories seen")
