"""The time, as something that a test can replace."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from axolotl_core.errors import ToolCancelled

_log = logging.getLogger("axolotl")


class CancelReason(StrEnum):
    """Who or what ended a call before its time."""

    CLIENT = "client"
    DISCONNECT = "disconnect"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"


class CancellationToken(msgspec.Struct, eq=False):
    """The state that a call, its tool and the server share about its cancellation; the first reason stands.

    A tool in a thread may listen while the server cancels: a callback is taken off the list before it runs, so that
    each runs once, whoever gets there first.
    """

    reason: CancelReason | None = None
    _callbacks: list[Callable[[CancelReason], object]] = msgspec.field(default_factory=list)

    @property
    def cancelled(self) -> bool:
        """Whether the call should stop."""
        return self.reason is not None

    def raise_if_cancelled(self) -> None:
        """Leave the tool's code at a convenient place.

        Raises:
            ToolCancelled: if the call was cancelled.
        """
        if self.reason is not None:
            raise ToolCancelled(f"The call was cancelled ({self.reason})")

    def on_cancel(self, callback: Callable[[CancelReason], object]) -> None:
        """Run `callback` with the reason once the call is cancelled, at once if it already is."""
        self._callbacks.append(callback)
        if self.reason is not None:
            self._run_callbacks(self.reason)

    def cancel(self, reason: CancelReason) -> bool:
        """Cancel for `reason`; answers False if it was cancelled before."""
        if self.reason is not None:
            return False
        self.reason = reason
        self._run_callbacks(reason)
        return True

    def _run_callbacks(self, reason: CancelReason) -> None:
        while self._callbacks:
            try:
                callback = self._callbacks.pop(0)
            except IndexError:
                return
            _run(callback, reason)


def _run(callback: Callable[[CancelReason], object], reason: CancelReason) -> None:
    """Run a tool's callback; one that fails must not keep the others, or the call's end, from happening."""
    try:
        callback(reason)
    except Exception:
        _log.exception("a callback of a cancelled call failed")


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
