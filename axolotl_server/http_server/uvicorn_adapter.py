"""The adapter to uvicorn: the only module that imports it or relies on its internals.

uvicorn is pinned to one minor version. Before the pin moves, review what this module uses beyond uvicorn's documented
interface: `tests/server/http_server/test_uvicorn_adapter.py` lists it.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Collection
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final, Literal, TypeAlias

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from axolotl_server.asgi.http import Send
from axolotl_server.http.app import HttpApp

ClientConnection: TypeAlias = Any
"""A connection of a client: uvicorn's `HttpToolsProtocol`, whose annotations hide that it may have no request."""

_BACKLOG: Final = 2048
_KEEP_ALIVE_SECONDS: Final = 30
_CLOSE: Final = (b"connection", b"close")
_START: Final = {
    status.value: b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: "
    % (status.value, status.phrase.encode())
    for status in HTTPStatus
}


def write_reply(send: Send, status: int, body: bytes) -> bool:
    """Write a whole JSON reply past ASGI; return False if the server or the state of the connection needs ASGI."""
    cycle: Any = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle:
        return False
    if cycle.response_started or cycle.disconnected or cycle.access_log:
        return False
    if not cycle.keep_alive or cycle.flow.write_paused:
        return False
    head = [_START[status], b"%d\r\n" % len(body)]
    for name, value in cycle.default_headers:
        head += (name, b": ", value, b"\r\n")
    cycle.transport.write(b"%b\r\n%b" % (b"".join(head), body))
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True


def current_request(connection: ClientConnection) -> object | None:
    """Return an object that stands for the latest request of a connection."""
    request: object | None = connection.cycle
    return request


def is_idle(connection: ClientConnection) -> bool:
    """Whether no request is being received or answered."""
    return connection.cycle is None or bool(connection.cycle.response_complete)


def has_unread_body(connection: ClientConnection) -> bool:
    """Whether the latest request is incomplete and not yet answered."""
    request = connection.cycle
    return bool(request is not None and request.more_body and not request.response_started)


def awaited_part(connection: ClientConnection) -> Literal["head", "body"] | None:
    """Return the part of a request that the client has begun to send; None if there is nothing to wait for."""
    request = connection.cycle
    if request is not None and not request.response_complete:
        return "body" if request.more_body else None
    return "head" if connection.timeout_keep_alive_task is None else None


def close_with(connection: ClientConnection, response: bytes) -> None:
    """Send a response and close the connection."""
    connection.transport.write(response)
    connection.transport.close()


def close_gracefully(connection: ClientConnection) -> None:
    """Close a connection, after the reply if a request is being answered."""
    connection.shutdown()


def abort(connection: ClientConnection) -> None:
    """Close a connection without sending what is buffered."""
    connection.transport.abort()


class UvicornServer:
    """uvicorn's HTTP protocol for one application. Signals, startup and shutdown are not left to `uvicorn.Server`."""

    def __init__(self, app: HttpApp, tls: ssl.SSLContext | None = None) -> None:
        self._config = uvicorn.Config(
            app,
            http="httptools",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        self._config.load()
        self._tls = tls
        self._state = ServerState()
        self._closes_after_replies = False
        self.update_date()

    @property
    def connections(self) -> Collection[ClientConnection]:
        """The open connections; the collection changes as clients come and go."""
        return self._state.connections

    def update_date(self) -> None:
        """Update the `Date` header of replies; to be called about once per second."""
        date = (b"date", formatdate(time.time(), usegmt=True).encode())
        self._state.default_headers = [date, _CLOSE] if self._closes_after_replies else [date]

    async def listen(self, listener: socket.socket) -> asyncio.Server:
        """Accept all connections from a socket."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._make_protocol, sock=listener, ssl=self._tls, backlog=_BACKLOG)

    async def attach(self, accepted: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere."""
        loop = asyncio.get_running_loop()
        accepted.setblocking(False)
        try:
            await loop.connect_accepted_socket(self._make_protocol, accepted, ssl=self._tls)
        except OSError:  # the client has left, or does not speak TLS
            accepted.close()

    def close_after_replies(self) -> bool:
        """Close each connection after its next reply; return False if that was already requested."""
        if self._closes_after_replies:
            return False
        self._closes_after_replies = True
        self.update_date()
        for connection in tuple(self.connections):
            if not is_idle(connection):
                connection.cycle.keep_alive = False
        return True

    def cancel_requests(self) -> None:
        """Cancel the tasks of all requests."""
        for task in tuple(self._state.tasks):
            task.cancel()

    def _make_protocol(self) -> asyncio.Protocol:
        return HttpToolsProtocol(self._config, self._state, {}, asyncio.get_running_loop())
