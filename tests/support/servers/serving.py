"""Servers for tests over HTTP, in this process."""

import asyncio
import contextlib
import itertools
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_server import HttpApp, ServerHost
from axolotl_server.http.assembly import make_app
from axolotl_server.http.server.serve import Acceptor
from axolotl_server.http.server.uvicorn_adapter import UvicornServer

PATIENCE_SECONDS = 20.0
"""The timeout for events that must happen."""
MAX_LAG_SECONDS = 1000.0
"""How long requests may wait: by default, a server refuses some while it is slow, as on a busy machine."""
_GRACE_SECONDS = 1.0
"""The grace period of running requests on shutdown."""
_EAGER_TURNS = 200
"""How many turns of the loop `until` takes without a break."""


async def until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Let the loop run until a condition holds that has no event."""
    async with asyncio.timeout(seconds):
        for turn in itertools.takewhile(lambda _: not condition(), itertools.count()):
            await asyncio.sleep(0 if turn < _EAGER_TURNS else 0.001)  # sleeps: threads and processes need time, too


@dataclass(frozen=True)
class HttpServer:
    """A server on its own port."""

    host: ServerHost
    app: HttpApp
    port: int
    server: UvicornServer

    @property
    def url(self) -> str:
        """The URL of the endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"


@asynccontextmanager
async def serving(
    container: containers.Container,
    settings: Mapping[str, Any] | None = None,
    listener: socket.socket | None = None,
    **roles: Any,
) -> AsyncIterator[HttpServer]:
    """Serve a container over HTTP on the running loop, with objects for roles that it does not have."""
    for name, role in roles.items():
        setattr(container, name, providers.Object(role))
    async with ServerHost(container, flags=settings or {}) as host:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("axolotl_server.http.admission.MAX_LAG_SECONDS", MAX_LAG_SECONDS)
            app = make_app(host)
        listener = listener or free_port()
        server = UvicornServer(app, host.settings.http)
        acceptor = Acceptor(server, listener)
        try:
            yield HttpServer(host, app, listener.getsockname()[1], server)
        finally:
            app.sessions.end_streams()
            acceptor.close()
            listener.close()
            await _stop(server)


async def _stop(server: UvicornServer) -> None:
    for connection in tuple(server.connections):
        connection.shutdown()
    if tasks := tuple(server.state.tasks):
        await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
        server.cancel_requests()
    with contextlib.suppress(TimeoutError):
        await until(lambda: not server.connections, _GRACE_SECONDS)
    for connection in tuple(server.connections):
        connection.transport.abort()


class BackgroundServers:
    """HTTP servers on a loop in a thread, one per container, started on first use."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = contextlib.AsyncExitStack()
        self._servers: dict[type[containers.DeclarativeContainer], HttpServer] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="http-servers")
        self._thread.start()

    def url(self, container: type[containers.DeclarativeContainer]) -> str:
        """Serve a container if needed, and return its URL."""
        if container not in self._servers:
            opening = self._stack.enter_async_context(serving(container()))
            self._servers[container] = asyncio.run_coroutine_threadsafe(opening, self._loop).result(PATIENCE_SECONDS)
        return self._servers[container].url

    def close(self) -> None:
        """Stop all servers."""
        asyncio.run_coroutine_threadsafe(self._stack.aclose(), self._loop).result(PATIENCE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def free_port(port: int = 0) -> socket.socket:
    """Listen on a free port, or on a given one."""
    # asyncio disables Nagle's algorithm only if the protocol is given; otherwise a reply takes 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener
