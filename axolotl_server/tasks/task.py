"""A task: one call of a tool, from its request to the result that somebody fetches."""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from msgspec import Raw

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import ProtocolError
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.question import Question
from axolotl_server.peer import Connection, IStoppable

__all__ = ["Owner", "Status", "Task", "owner_of"]

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
Owner: TypeAlias = tuple[Principal, int | None]
"""Who may see a task: a principal, and of callers that nobody knows, the same connection."""

_OPEN = ("working", "input_required")


def owner_of(principal: Principal, connection: Connection | None) -> Owner:
    """Say whose a task is."""
    return principal, id(connection) if principal == ANONYMOUS and connection is not None else None


class Task:
    """The state of a call that runs on its own."""

    def __init__(self, owner: Owner, ttl_seconds: float, on_change: Callable[["Task"], object]) -> None:
        self.id = secrets.token_urlsafe(24)
        self.owner = owner
        self.ttl_seconds = ttl_seconds
        self.expires = time.monotonic() + ttl_seconds
        self.status: Status = "working"
        self.message: str | None = None
        self.created_at = self.updated_at = _now()
        self.result: Raw | None = None
        """What the tool answered, the whole result object."""
        self.error: ProtocolError | None = None
        """The error that the call ended with instead."""
        self.questions: dict[str, tuple[Question, asyncio.Future[Any]]] = {}
        """What the caller is asked, by key, where it answers by key."""
        self.calls: dict[Any, IStoppable] = {}
        """The running call."""
        self.ended = asyncio.Event()
        self.work: asyncio.Task[None] | None = None
        self._on_change = on_change
        self._waiting = 0

    @property
    def open(self) -> bool:
        """Whether it has not ended yet."""
        return self.status in _OPEN

    def end(
        self,
        status: Status,
        *,
        result: bytes | None = None,
        error: ProtocolError | None = None,
        message: str | None = None,
    ) -> None:
        """Note how it ended, unless it has ended before."""
        if not self.open:
            return
        self.result = None if result is None else Raw(result)
        self.error = error
        self._become(status, message)
        self.ended.set()

    def cancel(self) -> None:
        """End it because its caller says so, and stop what runs for it."""
        self.end("cancelled", message="The caller cancelled the task")
        for running in tuple(self.calls.values()):
            running.stop(CancelReason.CLIENT)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Show that the caller is asked something."""
        self._waiting += 1
        if self.open:
            self._become("input_required", None)
        try:
            yield
        finally:
            self._waiting -= 1
            if self.open and not self._waiting:
                self._become("working", None)

    def _become(self, status: Status, message: str | None) -> None:
        self.status, self.message, self.updated_at = status, message, _now()
        self._on_change(self)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
