"""The other side of the wire: connections that live, and the way back of a single message."""

import asyncio
from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import UNSET

from axolotl_core.layer import ToolCall
from axolotl_core.protocol.identity import Implementation, Principal, RequestId
from axolotl_core.protocol.messages import Head
from axolotl_core.protocol.wire import notification

if TYPE_CHECKING:
    from axolotl_server.eras.base import IEra

__all__ = ["Connection", "IExchange", "Request"]


class Connection:
    """A peer that stays: a process on stdio, or the session of an HTTP client that uses the handshake."""

    __slots__ = ("__weakref__", "calls", "client", "era", "initialized", "send")

    def __init__(self, send: Callable[[bytes], object]) -> None:
        self.send = send
        """Writes a message that answers no request."""
        self.era: IEra | None = None
        """The generation agreed upon in the handshake, None before it."""
        self.initialized = False
        self.client: Implementation | None = None
        self.calls: dict[RequestId, ToolCall] = {}


class IExchange(Protocol):
    """One incoming message's surroundings and its way back."""

    loop: asyncio.AbstractEventLoop
    principal: Principal
    status: int
    """The HTTP status of the reply, set by the handler when it refuses."""

    @property
    def headers(self) -> Mapping[bytes, bytes] | None:
        """The HTTP headers; None on a transport that has none."""
        ...

    def connection(self) -> Connection:
        """Give the connection the message belongs to.

        Raises:
            ProtocolError: if it belongs to none.
        """
        ...

    def open_connection(self) -> Connection:
        """Give the connection that a handshake begins."""
        ...

    def notify(self, message: bytes) -> None:
        """Send a message that concerns the request, ahead of its reply."""
        ...

    def watch(self, call: ToolCall) -> None:
        """Stop the call when its caller goes away; called once it has been running for a while."""
        ...


class Request(msgspec.Struct, eq=False, gc=False):
    """A decoded message together with all that its method may need; to a running tool it is the caller."""

    head: Head
    data: bytes
    era: "IEra"
    exchange: IExchange
    connection: Connection | None
    finished: bool = False
    _last_progress: float | None = None

    @property
    def client(self) -> Implementation | None:
        """What the client said it is, in the handshake or in this request."""
        if self.connection is not None and not self.era.revision.stateless:
            return self.connection.client
        meta = self.head.params.meta
        if meta is UNSET or meta.client_info is UNSET:
            return None
        try:
            return msgspec.json.decode(meta.client_info, type=Implementation)
        except msgspec.ValidationError:
            return None

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Notify a caller that gave a token; values that do not grow are left out, as the protocol demands."""
        meta = self.head.params.meta
        if meta is UNSET or meta.progress_token is UNSET or self.finished:
            return
        if not isfinite(progress) or (self._last_progress is not None and progress <= self._last_progress):
            return
        self._last_progress = progress
        params: dict[str, object] = {"progressToken": meta.progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None and self.era.revision.progress_messages:
            params["message"] = message
        self._notify(notification("notifications/progress", params))

    def _notify(self, message: bytes) -> None:
        """Write from the loop's thread, whatever thread the tool runs in."""
        if asyncio._get_running_loop() is self.exchange.loop:
            self.exchange.notify(message)
        else:
            self.exchange.loop.call_soon_threadsafe(self._notify_from_thread, message)

    def _notify_from_thread(self, message: bytes) -> None:
        """Write what a thread said, unless the call has ended since."""
        if not self.finished:
            self.exchange.notify(message)
