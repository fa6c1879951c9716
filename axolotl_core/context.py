"""What a tool learns about the call it answers, and how it speaks while it works."""

import time
from typing import Protocol

import msgspec

from axolotl_core.cancellation import CancellationToken, CancelReason
from axolotl_core.protocol.identity import ANONYMOUS, Implementation, Principal, RequestId

__all__ = ["ICaller", "ToolContext"]


class ICaller(Protocol):
    """The other side of a running call."""

    @property
    def client(self) -> Implementation | None:
        """What the client says it is; never proof of anything."""
        ...

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send a progress notification if the caller asked for them."""
        ...


class _NobodyListening:
    """The caller of a context that was made by hand, as unit tests do."""

    client: Implementation | None = None

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        return


_NOBODY: ICaller = _NobodyListening()


class ToolContext(msgspec.Struct, eq=False):
    """One call, as its tool sees it.

    It is a struct, not a plain class, because one is made for every call: this is the cheapest object there is.
    """

    request_id: RequestId = 0
    caller: ICaller = _NOBODY
    principal: Principal = ANONYMOUS
    token: CancellationToken | None = None
    """The state of the call's cancellation, made when somebody first asks for it."""
    deadline: float | None = None
    """When the call will be ended, on the clock of `time.monotonic`."""

    @property
    def client(self) -> Implementation | None:
        """What the client says it is; never proof of anything."""
        return self.caller.client

    @property
    def cancellation(self) -> CancellationToken:
        """The call's cancellation, to be handed on or listened to."""
        if self.token is None:
            self.token = CancellationToken()
        return self.token

    @property
    def cancelled(self) -> bool:
        """Whether the call should stop; a tool in a thread looks here between two steps."""
        return self.token is not None and self.token.reason is not None

    @property
    def cancel_reason(self) -> CancelReason | None:
        """Why the call should stop."""
        return None if self.token is None else self.token.reason

    @property
    def remaining_seconds(self) -> float | None:
        """The time left before the deadline, None where there is no deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def raise_if_cancelled(self) -> None:
        """Leave the tool's code at a convenient place.

        Raises:
            ToolCancelled: if the call was cancelled.
        """
        self.cancellation.raise_if_cancelled()

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell a caller that asked for it how far the work is; it never waits, from a thread neither."""
        self.caller.report_progress(progress, total, message)
