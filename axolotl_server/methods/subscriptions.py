"""`subscriptions/listen`: a stateless client keeps a request open to hear of changes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InternalError, InvalidParams, InvalidRequest
from axolotl_core.protocol.identity import Principal, RequestId
from axolotl_core.protocol.wire import notification
from axolotl_server.messages.connection import Connection, IExchange
from axolotl_server.messages.params import ListenParams, Wanted, read_params
from axolotl_server.messages.request import Request

if TYPE_CHECKING:
    from axolotl_server.tasks.directed_tasks import DirectedTasks

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
        self, maximum: int, audience_of: Callable[[str, Callable[[str], Iterable[str]]], frozenset[str]] | None = None
    ) -> None:
        self._maximum = maximum
        self._audience_of = audience_of
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

    def end_listeners(self) -> None:
        """End all listeners; they may come again."""
        for listener in tuple(self._listeners):
            listener.stop(CancelReason.SHUTDOWN)

    def list_changed(self, kind: Listable) -> None:
        """Tell everyone who wants to know, in other processes too, that a list changed."""
        self.notify_list_changed(kind)
        if self.relay is not None:
            self.relay("changed", kind)

    def updated(self, uri: str) -> None:
        """Tell everyone who watches a resource, or one that holds it, in other processes too, that it changed."""
        self.notify_updated(uri)
        if self.relay is not None:
            self.relay("updated", uri)

    def notify_list_changed(self, kind: Listable) -> None:
        """Tell everyone in this process that a list changed."""
        message = notification(f"notifications/{kind}/list_changed")
        for connection, loop in tuple(self._connections.items()):
            if connection.initialized:
                loop.call_soon_threadsafe(connection.send, message)
        for listener in tuple(self._listeners):
            listener.list_changed(kind)

    def notify_updated(self, uri: str) -> None:
        """Tell everyone in this process who watches a resource, or one that holds it, that it changed."""
        parents = frozenset(_parents(uri)) if self._audience_of is None else self._audience_of(uri, _parents)
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


Hearable: TypeAlias = Callable[[Principal, Sequence[str]], Awaitable[tuple[str, ...]]]
"""Chooses the resources that a principal may hear of."""

_NOT_ACCEPTABLE = 406


class SubscriptionMethods:
    """Opens listeners and keeps them until somebody ends them."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        capabilities: Mapping[str, Any],
        maximum_resources: int,
        tasks: "DirectedTasks | None",
        hearable: Hearable | None = None,
    ) -> None:
        self._tasks = tasks
        self._hearable = hearable
        self._subscriptions = subscriptions
        self._capabilities = capabilities
        self._maximum_resources = maximum_resources

    async def listen(self, request: Request) -> bytes | None:
        """Tell of changes until the client leaves; the result says that the server ended it."""
        assert request.head.id is not UNSET
        wanted = self._accepted(read_params(request.data, ListenParams).notifications, request)
        if self._hearable is not None:
            uris = await self._hearable(request.exchange.principal, wanted.resource_subscriptions)
            wanted = msgspec.structs.replace(wanted, resource_subscriptions=uris)
        if self._subscriptions.full:
            raise InternalError("Too many subscriptions are open; try again later", data={"retryAfterMs": 1000})
        listener = Listener(request.head.id, wanted, request.exchange)
        connection = request.connection
        with nullcontext() if connection is None else connection.running(request.head.id, listener):
            try:
                return await self._serve(listener, request)
            finally:
                self._subscriptions.remove(listener)

    async def _serve(self, listener: Listener, request: Request) -> bytes | None:
        if not listener.acknowledge():
            refusal = InvalidRequest("Not acceptable: send Accept: application/json, text/event-stream")
            refusal.status = _NOT_ACCEPTABLE
            raise refusal
        self._subscriptions.add(listener, request.connection)
        request.exchange.watch(listener)
        if await listener.ended is not CancelReason.SHUTDOWN:
            return None
        if request.exchange.headers is None:
            # Where everything shares one stream, clients may know the end by either of two messages.
            ended = notification("notifications/cancelled", {"requestId": request.head.id})
            request.exchange.loop.call_soon(request.exchange.notify, ended)
        return b"{" + request.era.tail_with_meta(listener.meta)[1:]

    def _accepted(self, wanted: Wanted, request: Request) -> Wanted:
        """Leave out what the server never tells of."""
        if len(wanted.resource_subscriptions) > self._maximum_resources:
            raise InvalidParams(f"Too many subscriptions: one client may watch {self._maximum_resources} resources")
        has = self._capabilities
        return Wanted(
            tools_list_changed=wanted.tools_list_changed and "tools" in has,
            prompts_list_changed=wanted.prompts_list_changed and "prompts" in has,
            resources_list_changed=wanted.resources_list_changed and "resources" in has,
            resource_subscriptions=wanted.resource_subscriptions if "resources" in has else (),
            task_ids=() if self._tasks is None else self._tasks.owned(request, wanted.task_ids),
        )
