"""A call that runs as a task, detached from its request."""

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
from axolotl_server.messages.fair_share import Share
from axolotl_server.messages.replies import hide_internal
from axolotl_server.messages.request import Request
from axolotl_server.questions.asking import IAsking
from axolotl_server.tasks.task import Task

_RELATED_TASK_KEY: Final = "io.modelcontextprotocol/related-task"


def mark_related(content: Mapping[str, Raw], task: Task) -> dict[str, Raw]:
    """Mark a result, or the params of a message, as belonging to a task; everything else stays as it is."""
    meta = msgspec.json.decode(content.get("_meta", b"{}"), type=dict[str, Raw])
    meta[_RELATED_TASK_KEY] = Raw(encode({"taskId": task.id}))
    return {**content, "_meta": Raw(encode(meta))}


class Waiter:
    """A request that waits for the end of a task; the task may send messages on its stream in the meantime."""

    def __init__(self, exchange: IExchange) -> None:
        self._exchange = exchange
        self._has_sent = False
        self.lost = False
        """Whether its connection is lost; a client that has received messages on it may come back."""
        self.stopped: asyncio.Future[CancelReason] = exchange.loop.create_future()

    def stop(self, reason: CancelReason) -> None:
        """Stop waiting."""
        if not self.stopped.done():
            self.stopped.set_result(reason)

    def mark_lost(self) -> None:
        """Note that the connection is lost."""
        self.lost = True
        if not self._has_sent:
            self.stop(CancelReason.DISCONNECT)

    def send(self, message: bytes) -> bool:
        """Send a message ahead of the reply, or return False if the client accepts none."""
        sent = not self.stopped.done() and self._exchange.notify(message)
        self._has_sent = self._has_sent or sent
        return sent


class _Message(msgspec.Struct):
    """The parts of a message of the server that matter here."""

    method: str
    jsonrpc: str = "2.0"
    id: RequestId | UnsetType = UNSET
    params: dict[str, Raw] = {}


@dataclass(slots=True)
class _SentQuestion:
    message: bytes
    carrier: Waiter | None = None
    """The request on whose stream it was sent, None if no request was waiting."""


class DetachedExchange(IExchange):
    """The exchange of a call that runs as a task.

    Messages go to the stream of a request that waits for the result, or to the connection. Over HTTP, questions need
    such a request, because nobody may be listening on the connection: they wait for one, and are sent again if it is
    lost.
    """

    headers: Mapping[bytes, bytes] | None = None
    share: Share | None = None
    client_address: str | None = None
    status = 200

    def __init__(self, task: Task, original: IExchange, connection: Connection | None) -> None:
        """Send messages on a connection; without one, messages are dropped."""
        self.loop = original.loop
        self.principal: Principal = original.principal
        self.headers = original.headers
        self.share = original.share
        self.client_address = original.client_address
        self._task = task
        self._connection = connection
        self._waiters: list[Waiter] = []
        """The latest first."""
        self._questions: dict[RequestId, _SentQuestion] = {}
        self.on_early_reply: Callable[[bytes | None], object]
        """Ends the task with a reply; set when its work begins."""

    def attach(self, waiter: Waiter) -> None:
        """Send messages on the stream of a request that waits for the result."""
        self._waiters.insert(0, waiter)
        self._forget_answered()
        for question in self._questions.values():
            if question.carrier is None or question.carrier.lost:
                question.carrier = self._send_to_waiter(question.message)

    def detach(self, waiter: Waiter) -> None:
        """Stop sending on the stream of a request, which is about to be answered."""
        self._waiters.remove(waiter)
        waiter.stop(CancelReason.CLIENT)

    def connection(self) -> Connection:
        """Never called: the call knows its connection."""
        raise NotImplementedError

    def reply_early(self, reply: bytes | None, running: ITask) -> None:
        """End the task although its code has not."""
        self.on_early_reply(reply)

    def open_connection(self) -> Connection:
        """Never called: a task does not begin a handshake."""
        raise NotImplementedError

    def notify(self, message: bytes) -> bool:
        """Send a message of the task."""
        if self._connection is None or self._task.silent:
            return True
        parsed = msgspec.json.decode(message, type=_Message)
        withdraws = parsed.method == "notifications/cancelled"
        if not self._task.open and not withdraws:
            return True
        parsed.params = mark_related(parsed.params, self._task)
        if self.headers is None:
            self._connection.send(_encode(parsed))
        elif parsed.id is not UNSET:
            self._ask(parsed.id, _encode(parsed))
        elif withdraws:
            self._withdraw(parsed)
        else:
            self._send(_encode(parsed))
        return True

    def _ask(self, number: RequestId, message: bytes) -> None:
        self._forget_answered()
        self._questions[number] = _SentQuestion(message, self._send_to_waiter(message))

    def _withdraw(self, parsed: _Message) -> None:
        """Cancel a question where it was asked; one that was not sent yet is just forgotten."""
        number: Any = msgspec.json.decode(parsed.params["requestId"])
        question = self._questions.pop(number, None)
        if question is not None and question.carrier is not None and not question.carrier.send(_encode(parsed)):
            self._send(_encode(parsed))

    def _send(self, message: bytes) -> None:
        assert self._connection is not None
        if self._send_to_waiter(message) is None:
            self._connection.send(message)

    def _send_to_waiter(self, message: bytes) -> Waiter | None:
        """Send on the stream of the latest waiting request, if possible one whose connection is not lost."""
        for waiter in sorted(self._waiters, key=lambda one: one.lost):
            if waiter.send(message):
                return waiter
        return None

    def _forget_answered(self) -> None:
        assert self._connection is not None
        pending = self._connection.pending_answers
        self._questions = {number: question for number, question in self._questions.items() if number in pending}


def _encode(parsed: _Message) -> bytes:
    """Encode a message in the usual order: a notification is recognized by its first bytes."""
    content: dict[str, Any] = {"jsonrpc": parsed.jsonrpc}
    if parsed.id is not UNSET:
        content["id"] = parsed.id
    return encode({**content, "method": parsed.method, "params": parsed.params})


Run: TypeAlias = Callable[[Request], Coroutine[Any, Any, bytes | None]]
"""Makes the call; the result is None if its caller has stopped it."""
Finish: TypeAlias = Callable[[Task, bytes, bool], None]
"""Ends a task with the result of its call; the last argument tells whether the result is an error."""


class _TaskConnection(Connection):
    """The connection as a task sees it: the client cannot cancel the call of a task like other requests."""

    __slots__ = ("_original",)

    def __init__(self, original: Connection, calls: dict[RequestId, IStoppable]) -> None:
        self._original = original
        super().__init__(original.send)
        self.era, self.client_data = original.era, original.client_data
        self.capability_data = original.capability_data
        self.pending_answers, self.waiting_calls = original.pending_answers, original.waiting_calls
        self.next_id = original.next_id
        self.calls = calls

    @property
    def input_closed(self) -> bool:
        """Whether the client has closed its end."""
        return self._original.input_closed

    @input_closed.setter
    def input_closed(self, input_closed: bool) -> None:
        """Ignore it: the connection knows."""

    @property
    def log_level(self) -> str | None:
        """The level that the client has set last."""
        return self._original.log_level

    @log_level.setter
    def log_level(self, level: str | None) -> None:
        """Ignore it: the connection knows."""


def detach_request(request: Request, task: Task, exchange: DetachedExchange, asking: IAsking) -> Request:
    """Make the request of a call that runs as a task."""
    original = Connection(_drop) if request.connection is None else request.connection
    connection = _TaskConnection(original, task.calls)
    return Request(request.head, request.data, request.era, exchange, connection, target=request.target, asking=asking)


async def work(task: Task, request: Request, run: Run, finish: Finish) -> None:
    """Run a call, and note in its task how it ended."""
    if not task.open:
        return  # it was cancelled, or has expired, before it could begin
    assert isinstance(request.exchange, DetachedExchange)
    request.exchange.on_early_reply = partial(_end_early, task, finish)
    try:
        result = await run(request)
        if result is None:
            task.end("cancelled")
        else:
            finish(task, result, request.is_error)
    except ProtocolError as error:
        task.fail(_encodable(error))
    except asyncio.CancelledError:
        task.end("cancelled")
        raise
    except Exception as error:
        task.fail(hide_internal(error, request.head.method))


def _end_early(task: Task, finish: Finish, reply: bytes | None) -> None:
    """End a task with the reply to a call that was abandoned."""
    if reply is None:
        task.end("cancelled")
        return
    content = msgspec.json.decode(reply, type=dict[str, msgspec.Raw])
    if "result" in content:
        finish(task, bytes(content["result"]), True)
    else:
        error = msgspec.json.decode(content["error"])
        task.fail(InternalError(error["message"], data=error.get("data")))


def _encodable(error: ProtocolError) -> ProtocolError:
    """Hide an error that cannot be encoded; a tool may raise one with any data."""
    try:
        encode((error.message, error.data))
    except Exception as unwritable:
        return hide_internal(unwritable, "writing an error")
    return error


def _drop(message: bytes) -> None:
    """Drop a message for a caller without a connection."""
