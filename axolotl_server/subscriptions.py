"""Who hears of changes: connections with a handshake, and listeners of the stateless revision.

Telling never waits. Every listener has its own way out with a bounded number of waiting messages; one that falls
behind loses the oldest of them, and nobody else notices.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

from axolotl_core.cancellation import CancelReason
from axolotl_core.protocol.identity import RequestId
from axolotl_core.protocol.wire import notification
from axolotl_server.methods.params import Wanted
from axolotl_server.peer import Connection, IExchange

__all__ = ["SUBSCRIPTION_KEY", "Listable", "Listener", "Subscriptions"]

Listable: TypeAlias = Literal["tools", "prompts", "resources"]

SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
_UPDATED: Final = "notifications/resources/updated"


class Listener:
    """One `subscriptions/listen` request that is open."""

    def __init__(self, request_id: RequestId, wanted: Wanted, exchange: IExchange) -> None:
        self._id = request_id
        self._wanted = wanted
        self._exchange = exchange
        self._watched = frozenset(wanted.resource_subscriptions)
        self.ended: asyncio.Future[CancelReason] = exchange.loop.create_future()

    @property
    def meta(self) -> dict[str, Any]:
        """What marks every message of the subscription."""
        return {SUBSCRIPTION_KEY: self._id}

    def stop(self, reason: CancelReason) -> None:
        """End the subscription."""
        if not self.ended.done():
            self.ended.set_result(reason)

    def acknowledge(self) -> bool:
        """Say what it will hear of; answers False if the client takes no stream."""
        return self._send("notifications/subscriptions/acknowledged", {"notifications": self._wanted})

    def list_changed(self, kind: Listable) -> None:
        """Tell of a changed list, if that is wanted."""
        if getattr(self._wanted, f"{kind}_list_changed"):
            self._soon(f"notifications/{kind}/list_changed", {})

    def updated(self, uri: str, parents: frozenset[str]) -> None:
        """Tell of a changed resource, if it or one that holds it is watched."""
        if not self._watched.isdisjoint(parents):
            self._soon(_UPDATED, {"uri": uri})

    def task_changed(self, task_id: str, described: dict[str, Any]) -> None:
        """Tell of a task that got on, if it is watched."""
        if task_id in self._wanted.task_ids:
            self._soon("notifications/tasks", described)

    def _soon(self, method: str, params: dict[str, Any]) -> None:
        self._exchange.loop.call_soon_threadsafe(self._send, method, params)

    def _send(self, method: str, params: dict[str, Any]) -> bool:
        if self.ended.done():
            return True
        return self._exchange.notify(notification(method, {**params, "_meta": self.meta}))


class Subscriptions:
    """Everybody who is told of changes; any thread may tell."""

    def __init__(
        self, maximum: int, kin_of: Callable[[str, Callable[[str], Iterable[str]]], frozenset[str]] | None = None
    ) -> None:
        self._maximum = maximum
        self._kin_of = kin_of
        """Chooses whose watchers hear of a change, where not everybody may hear of everything."""
        self._connections: dict[Connection, asyncio.AbstractEventLoop] = {}
        self._listeners: dict[Listener, Connection | None] = {}
        self._closing = False
        self.relay: Callable[[Literal["changed", "updated"], str], object] | None = None
        """Tells other processes of a change; None where there are none to be told."""

    @property
    def full(self) -> bool:
        """Whether no further listener is taken."""
        return self._closing or len(self._listeners) >= self._maximum

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    @property
    def listeners(self) -> int:
        """How many `subscriptions/listen` requests are open."""
        return len(self._listeners)

    def connect(self, connection: Connection) -> None:
        """Tell a connection of changes from now on."""
        self._connections[connection] = asyncio.get_running_loop()

    def disconnect(self, connection: Connection) -> None:
        """Tell it no more."""
        self._connections.pop(connection, None)

    def add(self, listener: Listener, connection: Connection | None) -> None:
        """Tell a listener from now on."""
        self._listeners[listener] = connection

    def remove(self, listener: Listener) -> None:
        """Tell it no more."""
        self._listeners.pop(listener, None)

    def refuse(self) -> None:
        """Take no further listener, because the server ends."""
        self._closing = True

    def end(self, connection: Connection | None = None) -> None:
        """End all listeners, or those of a connection, because the server ends."""
        self._closing = self._closing or connection is None
        for listener, owner in tuple(self._listeners.items()):
            if connection is None or owner is connection:
                listener.stop(CancelReason.SHUTDOWN)

    def dismiss(self) -> None:
        """End all listeners; they may come again."""
        for listener in tuple(self._listeners):
            listener.stop(CancelReason.SHUTDOWN)

    def list_changed(self, kind: Listable) -> None:
        """Tell everyone who wants to know, in other processes too, that a list changed."""
        self.tell_changed(kind)
        if self.relay is not None:
            self.relay("changed", kind)

    def updated(self, uri: str) -> None:
        """Tell everyone who watches a resource, or one that holds it, in other processes too, that it changed."""
        self.tell_updated(uri)
        if self.relay is not None:
            self.relay("updated", uri)

    def tell_changed(self, kind: Listable) -> None:
        """Tell everyone in this process that a list changed."""
        message = notification(f"notifications/{kind}/list_changed")
        for connection, loop in tuple(self._connections.items()):
            if connection.initialized:
                loop.call_soon_threadsafe(connection.send, message)
        for listener in tuple(self._listeners):
            listener.list_changed(kind)

    def tell_updated(self, uri: str) -> None:
        """Tell everyone in this process who watches a resource, or one that holds it, that it changed."""
        parents = frozenset(_parents(uri)) if self._kin_of is None else self._kin_of(uri, _parents)
        message = notification(_UPDATED, {"uri": uri})
        for connection, loop in tuple(self._connections.items()):
            if not connection.subscriptions.isdisjoint(parents):
                loop.call_soon_threadsafe(connection.send, message)
        for listener in tuple(self._listeners):
            listener.updated(uri, parents)

    def task_changed(self, task_id: str, described: dict[str, Any]) -> None:
        """Tell everyone who watches a task that it got on."""
        for listener in tuple(self._listeners):
            listener.task_changed(task_id, described)


def _parents(uri: str) -> Iterator[str]:
    """Give a URI and all that begin it up to a slash: who watches a directory hears of its files."""
    yield uri
    for place, character in enumerate(uri):
        if character == "/":
            yield uri[:place]
            yield uri[: place + 1]
