"""The adapter to uvicorn: the server that accepts connections and gives them their protocol.

Only this package imports uvicorn, and relies on its internals. uvicorn is pinned to one minor version. Before the pin
moves, review what is used beyond uvicorn's documented interface: `tests/server/http_server/test_uvicorn_adapter.py`
lists it.
"""

import asyncio
import logging
import resource
import socket
import ssl
import time
from collections.abc import Set
from email.utils import formatdate
from functools import partial
from typing import Any, Final, cast

from uvicorn.config import Config

from axolotl_server.http.app import HttpApp
from axolotl_server.http.server.connection_limits import CLOSE, ConnectionState
from axolotl_server.http.server.http_protocol import HttpProtocol
from axolotl_server.settings.transports import HttpSettings

_log: Final = logging.getLogger("axolotl")


HEAD_TIMEOUT_SECONDS: Final = 10.0
"""How long a client may take to send the headers of a request, or for a TLS handshake."""


def head_timeout_seconds(settings: HttpSettings) -> float:
    """Return how long the headers of a request may take, which is no longer than the request."""
    return min(HEAD_TIMEOUT_SECONDS, settings.request_timeout_seconds)


class UvicornServer:
    """uvicorn's HTTP protocol for one application. Signals, startup and shutdown are not left to `uvicorn.Server`."""

    def __init__(self, app: HttpApp, settings: HttpSettings, tls: ssl.SSLContext | None = None) -> None:
        self._config = Config(
            app,
            http=HttpProtocol,
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
        )
        self._config.load()
        self._tls: dict[str, Any] = {"ssl": tls}
        if tls is not None:
            self._tls["ssl_handshake_timeout"] = head_timeout_seconds(settings)
        self.state = ConnectionState(app, _affordable_connections(settings.max_connections))
        """What all connections share."""
        self.update_date()

    @property
    def connections(self) -> Set[HttpProtocol]:
        """The open connections; the collection changes as clients come and go."""
        return cast(set[HttpProtocol], self.state.connections)

    def update_date(self) -> None:
        """Update the `Date` header of replies; to be called about once per second."""
        date = (b"date", formatdate(time.time(), usegmt=True).encode())
        self.state.set_headers([date, CLOSE] if self.state.closes_after_replies else [date])

    async def attach(self, accepted: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere."""
        accepted.setblocking(False)
        try:
            if self._tls["ssl"] is None:
                await self._connect(accepted)
            else:
                await self._encrypt(accepted)
        except OSError:  # the client has left, or does not speak TLS
            accepted.close()

    async def _encrypt(self, accepted: socket.socket) -> None:
        """Serve a connection after its handshake, which counts as a connection: it holds a file descriptor."""
        address = accepted.getpeername() if accepted.family in (socket.AF_INET, socket.AF_INET6) else None
        share = self.state.share_of(None if address is None else address[0])
        if not self.state.begin_handshake(share):
            accepted.close()
            return
        try:
            await self._connect(accepted)
        finally:
            self.state.end_handshake(share)

    async def _connect(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        make = partial(HttpProtocol, self._config, self.state, {}, loop)
        await loop.connect_accepted_socket(make, accepted, **self._tls)

    def close_after_replies(self) -> None:
        """Close each connection after its next reply, so that the client's next request goes to another server."""
        self.state.closes_after_replies = True
        self.state.answers_directly = False
        self.update_date()
        for connection in tuple(self.connections):
            if not connection.is_idle:
                connection.cycle.keep_alive = False

    def cancel_requests(self) -> None:
        """Cancel the tasks of all requests."""
        for task in tuple(self.state.tasks):
            task.cancel()


def _affordable_connections(wanted: int) -> int:
    """Leave a fifth of the file descriptors to everything that is not a connection."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    affordable = wanted if descriptors == resource.RLIM_INFINITY else descriptors * 4 // 5
    if affordable < wanted:
        _log.info("at most %d connections are accepted, because of the limit on open files", affordable)
    return min(wanted, affordable)
