"""Cancellation of calls."""

import logging
from collections.abc import Callable
from enum import StrEnum

import msgspec

from axolotl_core.errors import ToolCancelled

_log = logging.getLogger("axolotl")


class CancelReason(StrEnum):
    """Why a call was cancelled."""

    CLIENT = "client"
    OPERATOR = "operator"
    """An operator cancelled the task."""
    DISCONNECT = "disconnect"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    LOST = "lost"
    """Another worker runs the task, because this one was presumed dead."""


class CancellationToken(msgspec.Struct, eq=False):
    """The state of a call's cancellation, shared by its code and the server. The first reason counts.

    A tool in a thread can add a callback while the server cancels the call. Each callback is removed from the list
    before it runs, so it runs only once.
    """

    reason: CancelReason | None = None
    _callbacks: list[Callable[[CancelReason], object]] = msgspec.field(default_factory=list)

    @property
    def cancelled(self) -> bool:
        """Whether the call should stop."""
        return self.reason is not None

    def raise_if_cancelled(self) -> None:
        """Stop the code here if the call was cancelled.

        Raises:
            ToolCancelled: if the call was cancelled.
        """
        if self.reason is not None:
            raise ToolCancelled(f"The call was cancelled ({self.reason})")

    def on_cancel(self, callback: Callable[[CancelReason], object]) -> None:
        """Run `callback` with the reason when the call is cancelled, or immediately if it already is."""
        self._callbacks.append(callback)
        if self.reason is not None:
            self._run_callbacks(self.reason)

    def cancel(self, reason: CancelReason) -> bool:
        """Cancel the call. Return False if it was already cancelled."""
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
            try:
                callback(reason)
            except Exception:  # the others still run
                _log.exception("a callback of a cancelled call failed")
