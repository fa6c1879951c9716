"""A task: one call of a tool, from its request to the result that somebody fetches."""

import asyncio
import secrets
import time
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias
from weakref import ref

from msgspec import Raw

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import ProtocolError
from axolotl_core.protocol.identity import ANONYMOUS, Principal, RequestId
from axolotl_server.peer import Connection, IStoppable
from axolotl_server.tasks.questions import OpenQuestions

__all__ = ["Design", "Owner", "Status", "Task", "owner_of", "repeated"]

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
Design: TypeAlias = Literal["requested", "directed"]
"""Whose wish a task is, the client's or the server's; what began in one way is followed in that way."""

_OPEN = ("working", "input_required")
_ENDINGS = {
    CancelReason.CLIENT: "The caller cancelled the task",
    CancelReason.DISCONNECT: "The caller has gone",
    CancelReason.TIMEOUT: "The task has expired",
    CancelReason.SHUTDOWN: "The server is shutting down",
}


class Owner(NamedTuple):
    """Who may see a task."""

    design: Design
    identity: tuple[str | None, str | None, str]
    connection: ref[Connection] | None
    """Where nobody knows who calls, only the same connection may; a dead one equals no other."""


def owner_of(design: Design, principal: Principal, connection: Connection | None) -> Owner:
    """Say whose a task is; scopes and claims do not count, as they change whenever a token is renewed."""
    same = ref(connection) if principal == ANONYMOUS and connection is not None else None
    return Owner(design, principal.identity, same)


class Task:
    """The state of a call that runs on its own."""

    def __init__(self, owner: Owner, number: int, ttl_seconds: float, on_change: Callable[["Task"], object]) -> None:
        self.id = secrets.token_urlsafe(24)
        self.owner = owner
        self.number = number
        """Its place among all tasks of the process."""
        self.ttl_seconds = ttl_seconds
        self.expires = time.monotonic() + ttl_seconds
        self.status: Status = "working"
        self.message: str | None = None
        self.created_at = self.updated_at = _now()
        self.result: Raw | None = None
        """What the tool answered, the whole result object."""
        self.error: ProtocolError | None = None
        """The error that the call ended with instead."""
        self.questions = OpenQuestions()
        """What the caller is asked, where it answers by key."""
        self.calls: dict[RequestId, IStoppable] = {}
        """The running call."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.mute = False
        """Whether the connection that it began on may be gone, because the server ends."""
        self._on_change: Callable[[Task], object] | None = on_change
        self._unanswered: set[Hashable] = set()

    @property
    def open(self) -> bool:
        """Whether it has not ended yet."""
        return self.status in _OPEN

    def end(self, status: Status, *, result: bytes | None = None, message: str | None = None) -> None:
        """Note how it ended, unless it has ended before."""
        if not self.open:
            return
        self.result = None if result is None else Raw(result)
        self.questions.close()
        self._become(status, message)
        self._on_change = None
        self.ended.set_result(None)

    def fail(self, error: ProtocolError) -> None:
        """Note the error that it ended with, unless it has ended before."""
        if self.open:
            self.error = repeated(error)
            self.end("failed", message=error.message)

    def cancel(self, reason: CancelReason) -> None:
        """End it without a result, and stop what runs for it."""
        self.mute = reason is CancelReason.SHUTDOWN
        self.end("cancelled", message=_ENDINGS[reason])
        for running in tuple(self.calls.values()):
            running.stop(reason)

    def wait_for(self, answer: Hashable) -> None:
        """Show that the caller is asked something."""
        self._unanswered.add(answer)
        if self.open:
            self._become("input_required", None)

    def go_on(self, answer: Hashable) -> None:
        """Show that an answer is not waited for any more."""
        if answer in self._unanswered:
            self._unanswered.remove(answer)
            if self.open and not self._unanswered:
                self._become("working", None)

    def _become(self, status: Status, message: str | None) -> None:
        self.status, self.message, self.updated_at = status, message, _now()
        if self._on_change is not None:
            self._on_change(self)


def repeated(error: ProtocolError) -> ProtocolError:
    """Copy an error to be raised again: the same one would hold on to the frames of everybody whom it has passed."""
    again = type(error).__new__(type(error), *error.args)
    again.__dict__.update(vars(error))
    return again


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
