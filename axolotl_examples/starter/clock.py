"""What time it is, as a service: a test brings its own."""

from datetime import UTC, datetime
from typing import Protocol


class IClock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """Give the present moment, with its time zone."""
        ...


class SystemClock(IClock):
    """Tells the time of the machine."""

    def now(self) -> datetime:
        """Give the present moment in UTC."""
        return datetime.now(UTC)
