"""`subscriptions/listen`: a stateless client keeps a request open to hear of changes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InternalError, InvalidParams, InvalidRequest
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.wire import notification
from axolotl_server.methods.params import ListenParams, Wanted, read_params
from axolotl_server.request import Request
from axolotl_server.subscriptions import Listener, Subscriptions

if TYPE_CHECKING:
    from axolotl_server.tasks.directed import DirectedTasks

__all__ = ["Hearable", "SubscriptionMethods"]

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
        if connection is not None:
            if request.head.id in connection.calls:
                raise InvalidRequest(f"Invalid request: a request with the id {request.head.id!r} is still running")
            connection.calls[request.head.id] = listener
        try:
            return await self._serve(listener, request)
        finally:
            self._subscriptions.remove(listener)
            if connection is not None:
                del connection.calls[request.head.id]

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
        return b"{" + request.era.closing(listener.meta)[1:]

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
