"""Care for HTTP connections: stalled ones are closed, and a graceful shutdown answers every call."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Set
from typing import Final, Literal, NamedTuple, TypeAlias

from axolotl_core.calls.cancellation import CancelReason
from axolotl_server.host import ServerHost
from axolotl_server.http.app import HttpApp
from axolotl_server.http.server.http_protocol import HttpProtocol
from axolotl_server.http.server.uvicorn_adapter import UvicornServer, head_timeout_seconds
from axolotl_server.settings.transports import HttpSettings

_REQUEST_TIMEOUT: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)
WRITE_TIMEOUT_SECONDS: Final = 30.0
"""How long a client may leave its response unread before the connection is closed and its call stopped."""
_LEAST_STALL_SECONDS: Final = 1.0
"""How long a client must have read nothing before it is closed because too many bytes wait to be read."""


class StallCheck:
    """A periodic check of all connections, so that a request that arrives in time costs nothing."""

    def __init__(self, settings: HttpSettings) -> None:
        self._limits = {
            "idle": settings.idle_timeout_seconds,
            "head": head_timeout_seconds(settings),
            "body": settings.request_timeout_seconds,
            "reply": WRITE_TIMEOUT_SECONDS,
        }
        self._max_unread_bytes = settings.max_buffer_bytes
        self._since: dict[HttpProtocol, tuple[object, float]] = {}
        """What each connection waits for, and since when."""

    def check(self, connections: Set[HttpProtocol]) -> None:
        """Close connections that have waited for the same thing for too long."""
        now = time.monotonic()
        before, self._since = self._since, {}
        unread: list[tuple[float, int, HttpProtocol]] = []
        for connection in tuple(connections):
            size = connection.transport.get_write_buffer_size()
            if not size and connection.part is None and not connection.is_idle:
                continue
            part, waits_for = _state_of(connection, size, before)
            if part is None:
                continue
            same, since = before.get(connection, (None, now))
            since = since if same == waits_for else now
            self._since[connection] = (waits_for, since)
            if now - since > self._limits[part]:
                _end(connection, part)
            elif size and now - since > _LEAST_STALL_SECONDS:
                unread.append((since, size, connection))
        self._bound(unread)

    def _bound(self, unread: list[tuple[float, int, HttpProtocol]]) -> None:
        """Close the clients that have read nothing for longest, until the rest is small enough."""
        total = sum(size for _, size, _ in unread)
        for _, size, connection in sorted(unread, key=lambda one: one[0]):
            if total <= self._max_unread_bytes:
                return
            total -= size
            connection.reset()


class _Unread(NamedTuple):
    drained: int
    smallest: int
    """The least that was unread since then."""


_Waiting: TypeAlias = tuple[Literal["idle", "head", "body", "reply"] | None, object]


def _state_of(connection: HttpProtocol, size: int, before: Mapping[HttpProtocol, tuple[object, float]]) -> _Waiting:
    """Return what a connection waits for, and an object that changes with progress; takes the bytes it has not read."""
    if size:
        known = before.get(connection, (None, 0.0))[0]
        smallest = known[1] if isinstance(known, _Unread) and known[0] == connection.drained else size
        return "reply", _Unread(connection.drained, min(size, smallest))
    if connection.is_discarding:
        return None, None
    if connection.part is not None:
        return connection.part, (connection.part, connection.cycle)
    return ("head" if connection.cycle is None else "idle"), connection.cycle


def _end(connection: HttpProtocol, part: str) -> None:
    if part == "reply":
        connection.reset()  # stops its call, too
        return
    if connection.has_unread_body or (part == "head" and connection.is_idle):
        connection.transport.write(_REQUEST_TIMEOUT)
    connection.transport.close()


_STOPPED_CALLS_SECONDS: Final = 1.0
"""How long calls that were stopped may take to be answered; they usually need a fraction of it."""
_LAST_REPLIES_SECONDS: Final = 1.0
_URGENT_SECONDS: Final = 0.5
_LINGER_SECONDS: Final = 0.15
"""How long idle connections stay open, so that requests that were already sent are answered."""
_STEP_SECONDS: Final = 0.02
_IDLE_SECONDS: Final = 2.0
"""How long a client may take to send its next request to a server that was replaced."""

_HAND_OVER_SECONDS: Final = 1.0
"""How long it may take to close all idle connections when another process takes over."""
_QUIET_SECONDS: Final = 0.1
"""How long a connection must be idle before it is closed."""

_log: Final = logging.getLogger("axolotl")


class HttpDrain:
    """A graceful shutdown: answers every call, then closes every connection. Each step is logged.

    Health checks report the server as not ready from the stop signal on, without any help from here. A second signal
    cuts every wait short.
    """

    def __init__(self, server: UvicornServer, app: HttpApp, host: ServerHost) -> None:
        self._server = server
        self._app = app
        self._host = host
        self._stop_signal = host.stop_signal
        self._inflight = host.handler.inflight
        self._deadline = 0.0
        """When clients must have read their replies."""

    async def hand_over(self, announce: Callable[[], object]) -> None:
        """Close idle connections, announce the change to clients that listen, and end their streams.

        Clients reconnect to the new process: one that reacts to the announcement has no connection to this one left.
        """
        self._server.close_after_replies()
        await self._stop_signal.run_unless_urgent(self._close_idle())
        announce()
        await asyncio.sleep(_STEP_SECONDS)
        self._app.sessions.end_streams()

    async def _close_idle(self) -> None:
        """Close each connection after a short idle time, so that a request that was already sent is not lost."""
        deadline = _now() + _HAND_OVER_SECONDS
        quiet: dict[tuple[HttpProtocol, object], float] = {}
        """Since when each connection has been idle after its latest request."""
        while idle := [one for one in tuple(self._server.connections) if one.is_idle]:
            for connection in idle:
                since = quiet.setdefault((connection, connection.cycle), _now())
                if _now() >= min(since + _QUIET_SECONDS, deadline):
                    connection.shutdown()
            await asyncio.sleep(_STEP_SECONDS)

    async def answer_calls(self) -> None:
        """Accept calls for a while, then refuse them; wait for running calls, stop the rest, end all streams."""
        http, stop_signal = self._host.settings.http, self._stop_signal
        _log.info("stopping, requested by %s: the server is no longer ready", stop_signal.source or "this process")
        self._server.close_after_replies()
        self._host.pause()
        if stop_signal.replaced:
            _log.info("replaced by another process: calls are accepted until all clients have moved")
            self._app.sessions.end_listeners()
            await stop_signal.run_unless_urgent(self._until_moved(http.drain_seconds))
        elif http.drain_delay_seconds:
            _log.info("calls are still accepted for %g seconds", http.drain_delay_seconds)
            await stop_signal.run_unless_urgent(asyncio.sleep(http.drain_delay_seconds))
        self._deadline = _now() + http.drain_seconds
        self._inflight.refuse()
        self._app.sessions.refuse_streams()
        if self._inflight:
            running, seconds = len(self._inflight), http.drain_seconds
            _log.info("new calls are refused; running calls: %d, which get at most %g seconds", running, seconds)
            await stop_signal.run_unless_urgent(self._inflight.drain(http.drain_seconds))
            self._inflight.stop_all(CancelReason.SHUTDOWN)
            await self._inflight.drain(_STOPPED_CALLS_SECONDS)
        await self._host.stop_extensions()
        await asyncio.sleep(0)  # listeners are notified of their tasks before their streams end
        self._app.sessions.end_streams()

    async def close_connections(self) -> None:
        """Give clients time to read their replies, then close all connections."""
        connections = self._server.connections
        await self._until_closed(_LINGER_SECONDS)
        for connection in tuple(connections):
            if connection.has_unread_body:
                connection.transport.write(_UNAVAILABLE)
                connection.transport.close()
        for connection in tuple(connections):
            connection.shutdown()
        await self._until_closed(max(self._deadline - _now(), _LAST_REPLIES_SECONDS))
        if connections:
            _log.warning("closing connections whose clients have not read everything: %d", len(connections))
        for connection in tuple(connections):
            connection.transport.abort()
        self._server.cancel_requests()

    async def _until_closed(self, seconds: float) -> None:
        began, connections = _now(), self._server.connections
        usual, urgent = began + seconds, began + min(seconds, _URGENT_SECONDS)
        while connections and _now() < (urgent if self._stop_signal.urgent else usual):  # noqa: ASYNC110 - has no event
            await asyncio.sleep(_STEP_SECONDS)

    async def _until_moved(self, seconds: float) -> None:
        """Wait until no client is connected; close connections that stay idle."""
        connections, began = self._server.connections, _now()
        while connections and _now() < began + seconds:
            if _now() > began + _IDLE_SECONDS:
                for connection in tuple(connections):
                    if connection.is_idle:
                        connection.shutdown()
            await asyncio.sleep(_STEP_SECONDS)


def _now() -> float:
    return asyncio.get_running_loop().time()
