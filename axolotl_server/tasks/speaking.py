"""How a call that has left its request behind speaks to its caller."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from axolotl_core.cancellation import CancelReason
from axolotl_core.layer import ITask
from axolotl_core.protocol.identity import Principal, RequestId
from axolotl_core.protocol.wire import encode
from axolotl_server.peer import Connection, IExchange, IStoppable
from axolotl_server.tasks.task import Task

__all__ = ["DetachedExchange", "Waiter", "related"]

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


class DetachedExchange:
    """The way back of a call that runs as a task.

    What the call says goes along with a request that waits for the result, else to the connection. Questions over
    HTTP need such a request, because the connection may have nobody listening: they wait for one, and are asked again
    if it is lost.
    """

    status = 200

    def __init__(self, task: Task, original: IExchange, connection: Connection | None) -> None:
        """Speak to the caller on its connection; where that is None, say nothing."""
        self.loop = original.loop
        self.principal: Principal = original.principal
        self.headers: Mapping[bytes, bytes] | None = original.headers
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

    def settle(self, reply: bytes | None, running: ITask) -> None:
        """Let the task end although its code has not."""
        self.settling(reply)

    def open_connection(self) -> Connection:
        """Never happens: a task begins no handshake."""
        raise NotImplementedError

    def notify(self, message: bytes) -> bool:
        """Say something that belongs to the task."""
        if self._connection is None or self._task.mute:
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

    def watch(self, running: IStoppable) -> None:
        """Do nothing: a task does not end with a connection."""

    def hang_up(self) -> None:
        """Do nothing: nobody holds a line."""

    def demand(self, scopes: Iterable[str]) -> None:
        """Demand nothing: the request was answered."""

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
        pending = self._connection.pending
        self._asked = {number: asked for number, asked in self._asked.items() if number in pending}


def _encode(said: _Said) -> bytes:
    """Write a message in the order of all others, by which a notification is known from its first bytes."""
    content: dict[str, Any] = {"jsonrpc": said.jsonrpc}
    if said.id is not UNSET:
        content["id"] = said.id
    return encode({**content, "method": said.method, "params": said.params})
