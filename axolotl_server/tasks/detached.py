"""A call that leaves its request behind and runs on its own."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

import msgspec

from axolotl_core.errors import InternalError, ProtocolError
from axolotl_core.protocol.identity import RequestId
from axolotl_core.protocol.wire import encode
from axolotl_server.eras.asking import IAsking
from axolotl_server.failures import hide_internal
from axolotl_server.peer import Connection, IStoppable
from axolotl_server.request import Request
from axolotl_server.tasks.speaking import DetachedExchange
from axolotl_server.tasks.task import Task

__all__ = ["Finish", "Run", "detached", "work"]

Run: TypeAlias = Callable[[Request], Coroutine[Any, Any, bytes | None]]
"""Makes the call; the answer is None if it was stopped by its caller."""
Finish: TypeAlias = Callable[[Task, bytes], None]
"""Ends a task with the result of its call."""


class _Aside(Connection):
    """A connection as a task sees it: what runs for the task is not among what the client may cancel there."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Connection, calls: dict[RequestId, IStoppable]) -> None:
        self._whole = whole
        super().__init__(whole.send)
        self.era, self.client, self.capabilities = whole.era, whole.client, whole.capabilities
        self.pending, self.asking, self.next_id = whole.pending, whole.asking, whole.next_id
        self.calls = calls

    @property
    def deaf(self) -> bool:
        """Whether the client has closed its end, since the task began or before."""
        return self._whole.deaf

    @deaf.setter
    def deaf(self, deaf: bool) -> None:
        """Leave it to the connection."""

    @property
    def log_level(self) -> str | None:
        """What the client says now, not what it said when the task began."""
        return self._whole.log_level

    @log_level.setter
    def log_level(self, level: str | None) -> None:
        """Leave it to the client."""


def detached(request: Request, task: Task, exchange: DetachedExchange, asking: IAsking) -> Request:
    """Make the request of a call that runs as a task."""
    whole = Connection(_drop) if request.connection is None else request.connection
    connection = _Aside(whole, task.calls)
    return Request(request.head, request.data, request.era, exchange, connection, asking=asking)


async def work(task: Task, request: Request, run: Run, finish: Finish) -> None:
    """Run a call and note in its task how it ended."""
    if not task.open:
        return  # cancelled, or expired, before it could begin
    assert isinstance(request.exchange, DetachedExchange)
    request.exchange.settling = partial(_settle, task, finish)
    try:
        result = await run(request)
        if result is None:
            task.end("cancelled")
        else:
            finish(task, result)
    except ProtocolError as error:
        task.fail(_writable(error))
    except asyncio.CancelledError:
        task.end("cancelled")
        raise
    except Exception as error:
        task.fail(hide_internal(error, request.head.method))


def _settle(task: Task, finish: Finish, reply: bytes | None) -> None:
    """End a task with the reply to a call whose code goes on for nobody."""
    if reply is None:
        task.end("cancelled")
        return
    content = msgspec.json.decode(reply, type=dict[str, msgspec.Raw])
    if "result" in content:
        finish(task, bytes(content["result"]))
    else:
        error = msgspec.json.decode(content["error"])
        task.fail(InternalError(error["message"], data=error.get("data")))


def _writable(error: ProtocolError) -> ProtocolError:
    """Hide an error that no message can hold; a tool may raise one with anything in it."""
    try:
        encode((error.message, error.data))
    except Exception as unwritable:
        return hide_internal(unwritable, "writing an error")
    return error


def _drop(message: bytes) -> None:
    """Say nothing to a caller that keeps no connection."""
