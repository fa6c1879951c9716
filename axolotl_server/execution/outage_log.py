"""Log lines about something that fails for a while, such as a store or a disk."""

import logging
from collections.abc import Callable
from time import monotonic
from typing import Final

_SILENT_SECONDS: Final = 10.0
_REMEMBERED_SECONDS: Final = 30.0
"""How long a failure counts as an outage if nothing tries again."""

_log: Final = logging.getLogger("axolotl")


class OutageLog:
    """Logs an outage at most every ten seconds, with the number of its effects since the last line, and its end."""

    def __init__(
        self, subject: str, effect: str, *, level: int = logging.WARNING, clock: Callable[[], float] = monotonic
    ) -> None:
        self._subject = subject
        self._effect = effect
        self._level = level
        self._clock = clock
        self._count = 0
        self._silent_until = float("-inf")
        self._failed: tuple[float, str] | None = None
        """When and why it failed last; None if it has recovered."""
        self._is_logged = False
        """Whether the present outage is in the log, so that its end belongs there too."""

    def count(self, effects: int) -> None:
        """Count effects for the next line."""
        self._count += effects

    def failed(self, problem: str, *, effects: int = 1, bug: BaseException | None = None) -> None:
        """Count effects and log the problem, unless there was a line a moment ago; a bug gets its traceback."""
        self._count += effects
        now = self._clock()
        self._failed = now, problem
        if now < self._silent_until:
            return
        self._silent_until = now + _SILENT_SECONDS
        self._is_logged = True
        arguments = self._subject, problem, self._effect, self._count
        _log.log(self._level, "%s is unavailable (%s); %s: %d", *arguments, exc_info=bug)
        self._count = 0

    @property
    def recent_problem(self) -> str | None:
        """Why it failed in the last moments; None if it did not, or has recovered."""
        if self._failed is None or self._clock() - self._failed[0] > _REMEMBERED_SECONDS:
            return None
        return self._failed[1]

    def recovered(self) -> None:
        """Log the end of an outage that is in the log."""
        self._failed = None
        if self._is_logged:
            self._is_logged = False
            _log.warning("%s is available again; %s in the meantime: %d", self._subject, self._effect, self._count)
            self._count = 0
