"""Notifications of changes, and `subscriptions/listen`, a request that stays open to receive them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import UNSET
from msgspec.structs import replace

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InternalError, InvalidParams, InvalidRequest
from axolotl_core.protocol.identity import Principal, RequestId
from axolotl_core.protocol.messages import SUBSCRIPTION_KEY
from axolotl_core.protocol.wire import notification
from axolotl_core.resources.uri_form import MAX_URI_CHARACTERS, canonical_uri
from axolotl_server.protocol.connection import MAX_RESOURCES, Connection, IExchange, WaitingRequest
from axolotl_server.protocol.fair_share import is_used_up
from axolotl_server.protocol.params import SubscriptionFilter, listen_params, read_params
from axolotl_server.protocol.request import Request

if TYPE_CHECKING:
    from axolotl_server.extension import Topic

Listable: TypeAlias = Literal["tools", "prompts", "resources"]

MAX_PER_REQUEST: Final = 100
"""How many resources, and how many names of a topic, one `subscriptions/listen` request may name."""
_UPDATED: Final = "notifications/resources/updated"


class Listener(WaitingRequest):
    """An open `subscriptions/listen` request."""

    def __init__(self, request_id: RequestId, subscribed: SubscriptionFilter, exchange: IExchange) -> None:
        super().__init__(exchange)
        self._id = request_id
        self._subscribed = subscribed
        self._exchange = exchange
        self.share = exchange.share
        self.uris = frozenset(canonical_uri(uri) or uri for uri in subscribed.resource_subscriptions)
        """The canonical URIs of the resources that the client subscribed to."""
        self.on_stop: Callable[[], object] | None = None
        """Called at once when it is stopped, although its request ends later."""

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of every message of the subscription."""
        return {SUBSCRIPTION_KEY: self._id}

    def stop(self, reason: CancelReason) -> None:
        if self.reason is None and self.on_stop is not None:
            self.on_stop()
        super().stop(reason)

    def acknowledge(self) -> bool:
        """Send the accepted subscriptions, or return False if the client accepts no stream."""
        return self._send("notifications/subscriptions/acknowledged", {"notifications": self._subscribed})

    def list_changed(self, kind: Listable) -> None:
        """Notify the client that a list has changed, if it subscribed to that."""
        if getattr(self._subscribed, f"{kind}_list_changed"):
            self._send_soon(f"notifications/{kind}/list_changed", {})

    def updated(self, uri: str) -> None:
        """Notify the client that a resource has changed."""
        self._send_soon(_UPDATED, {"uri": uri})

    def follows(self, topic: str, name: str) -> bool:
        """Whether the client follows a name of a topic."""
        return name in getattr(self._subscribed, topic)

    def publish(self, topic: str, name: str, method: str, params: dict[str, Any]) -> None:
        """Send a notification about a name of a topic, if the client follows it."""
        if self.follows(topic, name):
            self._send_soon(method, params)

    def _send_soon(self, method: str, params: dict[str, Any]) -> None:
        self._exchange.loop.call_soon_threadsafe(self._send, method, params)

    def _send(self, method: str, params: dict[str, Any]) -> bool:
        if self.reason is not None:
            return True
        return self._exchange.notify(notification(method, {**params, "_meta": self.meta}))


class Subscriptions:
    """The connections and listeners that are notified of changes; any thread may report a change."""

    def __init__(
        self,
        maximum: int,
        audience_of: Callable[[str, frozenset[str]], frozenset[str]] | None = None,
        maximum_per_principal: int | None = None,
    ) -> None:
        self._maximum = maximum
        self._maximum_per_principal = maximum_per_principal
        self._audience_of = audience_of
        """Chooses the parents whose subscribers are notified of a change, where access is restricted."""
        self._connections: dict[Connection, asyncio.AbstractEventLoop] = {}
        self._listeners: dict[Listener, Connection | None] = {}
        self._closing = False
        self.relay: Callable[[Literal["changed", "updated"], str], object] | None = None
        """Reports a change to other processes; None if there are none."""

    def check_room(self, exchange: IExchange) -> None:
        """Raise InternalError if there is no room for a further listener."""
        limit, reason = self._maximum_per_principal, "overloaded"
        if self._closing:
            message, reason = "The server is shutting down; try again", "shutdown"
        elif len(self._listeners) >= self._maximum:
            message = "Too many subscriptions are open; try again later"
        elif is_used_up(exchange.share, limit, self._listeners):
            message = f"Too many subscriptions: one caller may have {limit} open; end one first"
        else:
            return
        raise InternalError(message, data={"reason": reason, "retryAfterMs": 1000})

    @property
    def connections(self) -> int:
        """The number of connections."""
        return len(self._connections)

    @property
    def listeners(self) -> int:
        """The number of open `subscriptions/listen` requests."""
        return len(self._listeners)

    def connect(self, connection: Connection) -> None:
        """Notify a connection from now on."""
        self._connections[connection] = asyncio.get_running_loop()

    def disconnect(self, connection: Connection) -> None:
        """Stop notifying a connection."""
        self._connections.pop(connection, None)

    def add(self, listener: Listener, connection: Connection | None) -> None:
        """Notify a listener from now on."""
        self._listeners[listener] = connection

    def remove(self, listener: Listener) -> None:
        """Stop notifying a listener."""
        self._listeners.pop(listener, None)

    def refuse(self) -> None:
        """Refuse further listeners, because the server is stopping."""
        self._closing = True

    def end(self, connection: Connection | None = None) -> None:
        """End all listeners, or those of a connection; their clients may listen again unless `refuse` was called."""
        for listener, owner in tuple(self._listeners.items()):
            if connection is None or owner is connection:
                listener.stop(CancelReason.SHUTDOWN)

    def list_changed(self, kind: Listable, *, relays: bool = True) -> None:
        """Notify all clients that a list has changed; those of other processes too, unless one of them has said so."""
        message = notification(f"notifications/{kind}/list_changed")
        for connection, loop in tuple(self._connections.items()):
            if connection.initialized:
                loop.call_soon_threadsafe(connection.send, message)
        for listener in tuple(self._listeners):
            listener.list_changed(kind)
        if relays and self.relay is not None:
            self.relay("changed", kind)

    def updated(self, uri: str, *, relays: bool = True) -> None:
        """Notify the subscribers of a resource that it has changed, as `list_changed` does."""
        canonical = canonical_uri(uri) or uri
        parents = frozenset(_parents(canonical))
        connections, listeners = tuple(self._connections.items()), tuple(self._listeners)
        if self._audience_of is not None:
            watched = (*(connection.subscriptions for connection, _ in connections), *(one.uris for one in listeners))
            parents = self._audience_of(canonical, frozenset().union(*(parents & uris for uris in watched)))
        message = notification(_UPDATED, {"uri": uri})
        for connection, loop in connections:
            if not connection.subscriptions.isdisjoint(parents):
                loop.call_soon_threadsafe(connection.send, message)
        for listener in listeners:
            if not listener.uris.isdisjoint(parents):
                listener.updated(uri)
        if relays and self.relay is not None:
            self.relay("updated", uri)

    def follows(self, topic: str, name: str) -> bool:
        """Whether a client follows a name of a topic of an extension."""
        return any(listener.follows(topic, name) for listener in self._listeners)

    def publish(self, topic: str, name: str, method: str, params: dict[str, Any]) -> None:
        """Send a notification to the clients that follow a name of a topic."""
        for listener in tuple(self._listeners):
            listener.publish(topic, name, method, params)


def _parents(uri: str) -> Iterator[str]:
    """Return a URI and its prefixes that end at a slash: a subscriber of a directory is notified of its files."""
    yield uri
    for place, character in enumerate(uri):
        if character == "/":
            yield uri[:place]
            yield uri[: place + 1]


ReadableUris: TypeAlias = Callable[[Principal, Sequence[str]], Awaitable[tuple[str, ...]]]
"""Chooses the resources that a principal may be notified of."""

_NOT_ACCEPTABLE = 406


class SubscriptionMethods:
    """Opens listeners and keeps them until the client or the server ends them."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        capabilities: Mapping[str, Any],
        topics: "Mapping[str, Topic]",
        readable_uris: ReadableUris | None = None,
    ) -> None:
        self._topics = topics
        self._params = listen_params(topics)
        self._readable_uris = readable_uris
        self._subscriptions = subscriptions
        self._capabilities = capabilities

    async def listen(self, request: Request) -> bytes | None:
        """Notify the client of changes until it leaves; there is a result only if the server ends the subscription."""
        assert request.head.id is not UNSET
        supported = self._supported(read_params(request.data, self._params).notifications)
        self._subscriptions.check_room(request.exchange)
        subscribed = await self._permitted(supported, request)
        self._subscriptions.check_room(request.exchange)  # others may have subscribed in the meantime
        listener = Listener(request.head.id, subscribed, request.exchange)
        connection = request.connection
        listener.on_stop = partial(self._forget, listener, request)
        with nullcontext() if connection is None else connection.running(request.head.id, listener):
            try:
                return await self._serve(listener, request)
            finally:
                self._subscriptions.remove(listener)

    def _forget(self, listener: Listener, request: Request) -> None:
        """Make room for another listener, which may have the same ID."""
        self._subscriptions.remove(listener)
        if request.connection is not None and request.head.id is not UNSET:
            request.connection.unregister(request.head.id, listener)

    async def _serve(self, listener: Listener, request: Request) -> bytes | None:
        if not listener.acknowledge():
            refusal = InvalidRequest("Not acceptable: send Accept: application/json, text/event-stream")
            refusal.status = _NOT_ACCEPTABLE
            raise refusal
        self._subscriptions.add(listener, request.connection)
        request.exchange.watch(listener.stop)
        if await listener.stopped is not CancelReason.SHUTDOWN:
            return None
        if request.exchange.headers is None:
            # On a shared stream, clients recognize the end by one of two messages, so both are sent.
            ended = notification("notifications/cancelled", {"requestId": request.head.id})
            request.exchange.loop.call_soon(request.exchange.notify, ended)
        return b"{" + request.era.tail_with_meta(listener.meta)[1:]

    def _supported(self, subscribed: SubscriptionFilter) -> SubscriptionFilter:
        """Leave out subscriptions that the server does not support, or raise InvalidParams if there are too many."""
        uris = subscribed.resource_subscriptions
        if len(uris) > MAX_RESOURCES:
            raise InvalidParams(f"Too many subscriptions: a client may subscribe to {MAX_RESOURCES} resources")
        topics = [(one.what, getattr(subscribed, topic)) for topic, one in self._topics.items()]
        for what, names in (("resources", uris), *topics):
            if len(names) > MAX_PER_REQUEST:
                named = f"{MAX_PER_REQUEST} {what}"
                raise InvalidParams(f"Too many subscriptions: a request may name {named}; send more requests")
        longest = max(map(len, uris), default=0)
        if longest > MAX_URI_CHARACTERS:
            raise InvalidParams(
                f"Invalid params: a URI has {longest} characters; at most {MAX_URI_CHARACTERS} are allowed"
            )
        capabilities = self._capabilities
        return replace(
            subscribed,
            tools_list_changed=subscribed.tools_list_changed and "tools" in capabilities,
            prompts_list_changed=subscribed.prompts_list_changed and "prompts" in capabilities,
            resources_list_changed=subscribed.resources_list_changed and "resources" in capabilities,
            resource_subscriptions=subscribed.resource_subscriptions if "resources" in capabilities else (),
        )

    async def _permitted(self, subscribed: SubscriptionFilter, request: Request) -> SubscriptionFilter:
        """Leave out the resources, and the names of topics, that the caller may not see."""
        if self._readable_uris is not None:
            uris = await self._readable_uris(request.exchange.principal, subscribed.resource_subscriptions)
            subscribed = replace(subscribed, resource_subscriptions=uris)
        for topic, one in self._topics.items():
            names = getattr(subscribed, topic)
            if names:
                subscribed = replace(subscribed, **{topic: await one.choose(request, names)})
        return subscribed
