"""A clock service, which tests can replace."""

from datetime import UTC, datetime
from typing import Protocol


class IClock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """Return the current time with its time zone."""
        ...


class SystemClock(IClock):
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)
