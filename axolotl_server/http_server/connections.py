"""Care for HTTP connections: stalled ones are closed, and a graceful shutdown answers every call."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from axolotl_core.calls.cancellation import CancelReason
from axolotl_server.host import ServerHost
from axolotl_server.http.app import HttpApp
from axolotl_server.http_server.uvicorn_adapter import (
    ClientConnection,
    UvicornServer,
    abort,
    awaited_part,
    close_gracefully,
    close_with,
    current_request,
    has_unread_body,
    is_idle,
)

_REQUEST_TIMEOUT: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class StallCheck:
    """A periodic check of all connections, so that a request that arrives in time costs nothing."""

    def __init__(self, header_seconds: float, body_seconds: float) -> None:
        self._limits = {"head": header_seconds, "body": body_seconds}
        self._stalled: dict[ClientConnection, tuple[object, float]] = {}

    def check(self, connections: Iterable[ClientConnection]) -> None:
        """Close connections that have been stuck in the same incomplete request for too long."""
        now = time.monotonic()
        before, self._stalled = self._stalled, {}
        for connection in tuple(connections):
            part = awaited_part(connection)
            if part is None:
                continue
            request = current_request(connection)
            same, since = before.get(connection, (None, now))
            self._stalled[connection] = (request, since if same is request else now)
            if now - self._stalled[connection][1] > self._limits[part]:
                close_with(connection, _REQUEST_TIMEOUT)


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
        self._close_after_replies()
        await self._stop_signal.run_unless_urgent(self._close_idle())
        announce()
        await asyncio.sleep(_STEP_SECONDS)
        self._app.sessions.end_streams()

    async def _close_idle(self) -> None:
        """Close each connection after a short idle time, so that a request that was already sent is not lost."""
        deadline = _now() + _HAND_OVER_SECONDS
        quiet: dict[ClientConnection, tuple[object, float]] = {}
        while idle := [one for one in tuple(self._server.connections) if is_idle(one)]:
            for connection in idle:
                request = current_request(connection)
                latest, since = quiet.setdefault(connection, (request, _now()))
                if latest is not request:
                    quiet[connection] = request, _now()
                elif _now() >= min(since + _QUIET_SECONDS, deadline):
                    close_gracefully(connection)
            await asyncio.sleep(_STEP_SECONDS)

    async def answer_calls(self) -> None:
        """Accept calls for a while, then refuse them; wait for running calls, stop the rest, end all streams."""
        http, stop_signal = self._host.settings.http, self._stop_signal
        _log.info("stopping, requested by %s: the server is no longer ready", stop_signal.source or "this process")
        self._close_after_replies()
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
        await self._host.end_tasks()
        await asyncio.sleep(0)  # listeners are notified of their tasks before their streams end
        self._app.sessions.end_streams()

    async def close_connections(self) -> None:
        """Give clients time to read their replies, then close all connections."""
        connections = self._server.connections
        await self._until_closed(_LINGER_SECONDS)
        for connection in tuple(connections):
            if has_unread_body(connection):
                close_with(connection, _UNAVAILABLE)
        for connection in tuple(connections):
            close_gracefully(connection)
        await self._until_closed(max(self._deadline - _now(), _LAST_REPLIES_SECONDS))
        if connections:
            _log.warning("closing connections whose clients have not read everything: %d", len(connections))
        for connection in tuple(connections):
            abort(connection)
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
                    if is_idle(connection):
                        close_gracefully(connection)
            await asyncio.sleep(_STEP_SECONDS)

    def _close_after_replies(self) -> None:
        """Close each connection after its next reply, so that the client's next request goes to another server."""
        if self._server.close_after_replies():
            self._app.disable_direct_replies()


def _now() -> float:
    return asyncio.get_running_loop().time()
