"""A call that leaves its request behind and runs on its own."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InternalError, ProtocolError
from axolotl_core.layers import ITask
from axolotl_core.protocol.identity import Principal, RequestId
from axolotl_core.protocol.wire import encode
from axolotl_server.messages.connection import Connection, IExchange, IStoppable
from axolotl_server.messages.replies import hide_internal
from axolotl_server.messages.request import Request
from axolotl_server.questions.asking import IAsking
from axolotl_server.tasks.task import Task

_RELATED_TASK_KEY: Final = "io.modelcontextprotocol/related-task"


def related(content: Mapping[str, Raw], task: Task) -> dict[str, Raw]:
    """Mark a result, or the params of a message, as one of a task; all else stays as it was written."""
    meta = msgspec.json.decode(content.get("_meta", b"{}"), type=dict[str, Raw])
    meta[_RELATED_TASK_KEY] = Raw(encode({"taskId": task.id}))
    return {**content, "_meta": Raw(encode(meta))}


class Waiter:
    """A request that waits for the end of a task, and on whose stream the task may speak meanwhile."""

    def __init__(self, exchange: IExchange) -> None:
        self._exchange = exchange
        self._spoken = False
        self.lost = False
        """Whether its connection has gone; who has heard something on it may still come back for more."""
        self.stopped: asyncio.Future[CancelReason] = exchange.loop.create_future()

    def stop(self, reason: CancelReason) -> None:
        """Wait no longer."""
        if not self.stopped.done():
            self.stopped.set_result(reason)

    def lose(self) -> None:
        """Learn that the connection has gone."""
        self.lost = True
        if not self._spoken:
            self.stop(CancelReason.DISCONNECT)

    def tell(self, message: bytes) -> bool:
        """Send a message ahead of the reply; answers False if the client takes none."""
        told = not self.stopped.done() and self._exchange.notify(message)
        self._spoken = self._spoken or told
        return told


class _Said(msgspec.Struct):
    """A message of the server, as far as it matters here."""

    method: str
    jsonrpc: str = "2.0"
    id: RequestId | UnsetType = UNSET
    params: dict[str, Raw] = {}


@dataclass(slots=True)
class _Asked:
    message: bytes
    carrier: Waiter | None = None
    """Where it was sent, None before somebody waits."""


class DetachedExchange(IExchange):
    """The way back of a call that runs as a task.

    What the call says goes along with a request that waits for the result, else to the connection. Questions over
    HTTP need such a request, because the connection may have nobody listening: they wait for one, and are asked again
    if it is lost.
    """

    headers: Mapping[bytes, bytes] | None = None
    status = 200

    def __init__(self, task: Task, original: IExchange, connection: Connection | None) -> None:
        """Speak to the caller on its connection; where that is None, say nothing."""
        self.loop = original.loop
        self.principal: Principal = original.principal
        self.headers = original.headers
        self._task = task
        self._connection = connection
        self._waiters: list[Waiter] = []
        """The latest first."""
        self._asked: dict[RequestId, _Asked] = {}
        self.settling: Callable[[bytes | None], object]
        """Ends the task with a reply; set when its work begins."""

    def attach(self, waiter: Waiter) -> None:
        """Speak along with a request that waits for the result."""
        self._waiters.insert(0, waiter)
        self._forget_answered()
        for asked in self._asked.values():
            if asked.carrier is None or asked.carrier.lost:
                asked.carrier = self._tell(asked.message)

    def detach(self, waiter: Waiter) -> None:
        """Speak along with it no more: it will have been answered."""
        self._waiters.remove(waiter)
        waiter.stop(CancelReason.CLIENT)

    def connection(self) -> Connection:
        """Never happens: the call knows its connection."""
        raise NotImplementedError

    def reply_early(self, reply: bytes | None, running: ITask) -> None:
        """End the task although its code has not."""
        self.settling(reply)

    def open_connection(self) -> Connection:
        """Never happens: a task begins no handshake."""
        raise NotImplementedError

    def notify(self, message: bytes) -> bool:
        """Say something that belongs to the task."""
        if self._connection is None or self._task.silent:
            return True
        said = msgspec.json.decode(message, type=_Said)
        withdraws = said.method == "notifications/cancelled"
        if not self._task.open and not withdraws:
            return True
        said.params = related(said.params, self._task)
        if self.headers is None:
            self._connection.send(_encode(said))
        elif said.id is not UNSET:
            self._ask(said.id, _encode(said))
        elif withdraws:
            self._withdraw(said)
        else:
            self._say(_encode(said))
        return True

    def _ask(self, number: RequestId, message: bytes) -> None:
        self._forget_answered()
        self._asked[number] = _Asked(message, self._tell(message))

    def _withdraw(self, said: _Said) -> None:
        """Take a question back where it was asked; one that nobody heard is just forgotten."""
        number: Any = msgspec.json.decode(said.params["requestId"])
        asked = self._asked.pop(number, None)
        if asked is not None and asked.carrier is not None and not asked.carrier.tell(_encode(said)):
            self._say(_encode(said))

    def _say(self, message: bytes) -> None:
        assert self._connection is not None
        if self._tell(message) is None:
            self._connection.send(message)

    def _tell(self, message: bytes) -> Waiter | None:
        """Send along with the latest request that waits, rather one whose connection is there."""
        for waiter in sorted(self._waiters, key=lambda one: one.lost):
            if waiter.tell(message):
                return waiter
        return None

    def _forget_answered(self) -> None:
        assert self._connection is not None
        pending = self._connection.pending_answers
        self._asked = {number: asked for number, asked in self._asked.items() if number in pending}


def _encode(said: _Said) -> bytes:
    """Write a message in the order of all others, by which a notification is known from its first bytes."""
    content: dict[str, Any] = {"jsonrpc": said.jsonrpc}
    if said.id is not UNSET:
        content["id"] = said.id
    return encode({**content, "method": said.method, "params": said.params})


Run: TypeAlias = Callable[[Request], Coroutine[Any, Any, bytes | None]]
"""Makes the call; the answer is None if it was stopped by its caller."""
Finish: TypeAlias = Callable[[Task, bytes, bool], None]
"""Ends a task with the result of its call; the last argument tells whether the result is an error."""


class _TaskConnection(Connection):
    """A connection as a task sees it: what runs for the task is not among what the client may cancel there."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Connection, calls: dict[RequestId, IStoppable]) -> None:
        self._whole = whole
        super().__init__(whole.send)
        self.era, self.client, self.capabilities = whole.era, whole.client, whole.capabilities
        self.pending_answers, self.waiting_calls = whole.pending_answers, whole.waiting_calls
        self.next_id = whole.next_id
        self.calls = calls

    @property
    def input_closed(self) -> bool:
        """Whether the client has closed its end, since the task began or before."""
        return self._whole.input_closed

    @input_closed.setter
    def input_closed(self, input_closed: bool) -> None:
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
    connection = _TaskConnection(whole, task.calls)
    return Request(request.head, request.data, request.era, exchange, connection, target=request.target, asking=asking)


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
            finish(task, result, request.is_error)
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
        finish(task, bytes(content["result"]), True)
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
