"""The time, as something that a test can replace."""

import time
from abc import ABC, abstractmethod
from datetime import UTC, datetime

__all__ = ["IClock", "SystemClock"]


class IClock(ABC):
    """Tells the time."""

    @abstractmethod
    def now(self) -> datetime:
        """Give the date and time, in UTC."""

    @abstractmethod
    def monotonic(self) -> float:
        """Give seconds that only grow, of no particular beginning."""


class SystemClock(IClock):
    """The clock of the machine."""

    def now(self) -> datetime:
        """Ask the machine."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Ask the machine; deadlines are on this clock too."""
        return time.monotonic()
