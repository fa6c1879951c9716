"""The ladder that an HTTP server goes down when it is told to end; each step is logged."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

import uvicorn

from axolotl_core.calls.cancellation import CancelReason
from axolotl_server.host import ServerHost
from axolotl_server.http.app import HttpApp

_REQUEST_TIMEOUT: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class StallCheck:
    """Looks at all connections now and then, so that a request which arrives in time costs nothing."""

    def __init__(self, header_seconds: float, body_seconds: float) -> None:
        self._header_seconds = header_seconds
        self._body_seconds = body_seconds
        self._stalled: dict[Any, tuple[object, float]] = {}

    def look(self, connections: Iterable[Any]) -> None:
        """Close the connections that have stood at the same incomplete request for too long."""
        now = time.monotonic()
        before, self._stalled = self._stalled, {}
        for connection in tuple(connections):
            limit = self._limit_for(connection)
            if limit is None:
                continue
            request = connection.cycle
            same, since = before.get(connection, (None, now))
            self._stalled[connection] = (request, since if same is request else now)
            if now - self._stalled[connection][1] > limit:
                connection.transport.write(_REQUEST_TIMEOUT)
                connection.transport.close()

    @staticmethod
    def give_up(connections: Iterable[Any]) -> None:
        """Close the connections whose request is still incomplete, because the server ends."""
        for connection in tuple(connections):
            request = connection.cycle
            if request is not None and request.more_body and not request.response_started:
                connection.transport.write(_UNAVAILABLE)
                connection.transport.close()

    def _limit_for(self, connection: Any) -> float | None:
        """Say how long a connection may stay as it is; None where the client owes nothing."""
        request = connection.cycle
        if request is not None and not request.response_complete:
            return self._body_seconds if request.more_body else None
        return self._header_seconds if connection.timeout_keep_alive_task is None else None


_CLOSE: Final = (b"connection", b"close")
_SETTLING_SECONDS: Final = 1.0
"""How long calls that were stopped may take to be answered; a fraction of it is enough."""
_LAST_WORDS_SECONDS: Final = 1.0
_HASTY_SECONDS: Final = 0.5
_LINGERING_SECONDS: Final = 0.15
"""How long idle connections stay open, so that requests which are on their way already are answered."""
_STEP_SECONDS: Final = 0.02
_IDLE_SECONDS: Final = 2.0
"""How long a client may take to send its next request to a server that was replaced."""

_HAND_OVER_SECONDS: Final = 1.0
_QUIET_SECONDS: Final = 0.1
"""How long nothing may happen on a connection until it is closed, and how long all connections together may take."""

_log: Final = logging.getLogger("axolotl")


class HttpDrain:
    """Answers every call, then closes every connection.

    The server has not been ready since the signal came: its health says so without any of this. A second signal cuts
    every wait short.
    """

    def __init__(self, server: uvicorn.Server, app: HttpApp, host: ServerHost) -> None:
        self._server = server
        self._app = app
        self._host = host
        self._stop_signal = host.stop_signal
        self._inflight = host.handler.inflight
        self._until = 0.0
        """Until when clients may take what they are told."""

    async def hand_over(self, tell: Callable[[], object]) -> None:
        """Close connections that wait for nothing, have those told who wait for news, and end their streams.

        All of it is begun anew elsewhere. Whoever acts on what is told finds no connection to here any more.
        """
        self._send_clients_elsewhere()
        await self._stop_signal.run_unless_urgent(self._close_idle())
        tell()
        await asyncio.sleep(_STEP_SECONDS)
        self._app.sessions.end_streams()

    async def _close_idle(self) -> None:
        """Close each connection when nothing has happened on it for a moment: what is on its way is not lost then."""
        connections: Collection[Any] = self._server.server_state.connections
        until = _now() + _HAND_OVER_SECONDS
        quiet: dict[Any, tuple[object, float]] = {}
        while idle := [one for one in tuple(connections) if _is_idle(one)]:
            for connection in idle:
                request, since = quiet.setdefault(connection, (connection.cycle, _now()))
                if request is not connection.cycle:
                    quiet[connection] = connection.cycle, _now()
                elif _now() >= min(since + _QUIET_SECONDS, until):
                    connection.shutdown()
            await asyncio.sleep(_STEP_SECONDS)

    async def answer_calls(self) -> None:
        """Take calls for a while, refuse them, wait for those that run, stop the rest, and end all streams."""
        http, stop_signal = self._host.settings.http, self._stop_signal
        _log.info("told to stop by %s: not ready any more", stop_signal.source or "its own process")
        self._send_clients_elsewhere()
        if stop_signal.replaced:
            _log.info("replaced: calls are taken until all clients have gone to others")
            self._app.sessions.end_listeners()
            await stop_signal.run_unless_urgent(self._until_moved(http.drain_seconds))
        elif http.drain_delay_seconds:
            _log.info("calls are still taken for %g seconds", http.drain_delay_seconds)
            await stop_signal.run_unless_urgent(asyncio.sleep(http.drain_delay_seconds))
        self._until = _now() + http.drain_seconds
        self._inflight.refuse()
        self._app.sessions.refuse_streams()
        if self._inflight:
            running, seconds = len(self._inflight), http.drain_seconds
            _log.info("new calls are refused; still running: %d, for at most %g seconds", running, seconds)
            await stop_signal.run_unless_urgent(self._inflight.drain(http.drain_seconds))
            self._inflight.stop_all(CancelReason.SHUTDOWN)
            await self._inflight.drain(_SETTLING_SECONDS)
        await self._host.end_tasks()
        await asyncio.sleep(0)  # so that listeners are told of their tasks before they are told that it is over
        self._app.sessions.end_streams()

    async def close_connections(self) -> None:
        """Let clients take what is said to them, and leave."""
        connections = self._server.server_state.connections
        await self._until_closed(_LINGERING_SECONDS)
        StallCheck.give_up(connections)
        for connection in tuple(connections):
            connection.shutdown()
        await self._until_closed(max(self._until - _now(), _LAST_WORDS_SECONDS))
        if connections:
            _log.warning("%d connections are cut: nobody reads there", len(connections))
        for connection in tuple(connections):
            connection.transport.abort()
        for task in tuple(self._server.server_state.tasks):
            task.cancel()

    async def _until_closed(self, seconds: float) -> None:
        began = _now()
        patient, hasty = began + seconds, began + min(seconds, _HASTY_SECONDS)
        connections = self._server.server_state.connections
        while connections and _now() < (hasty if self._stop_signal.urgent else patient):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(_STEP_SECONDS)

    async def _until_moved(self, seconds: float) -> None:
        """Wait until no client is connected; a connection on which nothing happens for a while is closed."""
        connections, began = self._server.server_state.connections, _now()
        while connections and _now() < began + seconds:
            if _now() > began + _IDLE_SECONDS:
                for connection in tuple(connections):
                    if _is_idle(connection):
                        connection.shutdown()
            await asyncio.sleep(_STEP_SECONDS)

    def _send_clients_elsewhere(self) -> None:
        """Close each connection after its next reply, so that the request after that is sent to another server."""
        server = self._server
        if _CLOSE in server.config.encoded_headers:
            return
        self._app.spell_out_replies()
        server.config.encoded_headers = [*server.config.encoded_headers, _CLOSE]
        server.server_state.default_headers = [*server.server_state.default_headers, _CLOSE]
        for connection in tuple(server.server_state.connections):
            request: Any = getattr(connection, "cycle", None)
            if request is not None and not request.response_complete:
                request.keep_alive = False


def _is_idle(connection: Any) -> bool:
    """Tell whether no request is being sent or answered on a connection."""
    return connection.cycle is None or connection.cycle.response_complete


def _now() -> float:
    return asyncio.get_running_loop().time()
