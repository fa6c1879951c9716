"""Servers with a console, and what looks at it."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import uvicorn
from dependency_injector import containers

from axolotl_server import HttpApp, ServerHost
from axolotl_server.http.assembly import make_app
from tests.support.peers.session_client import EventReader

PAGE = {"X-Axolotl-Console": "1"}
"""What the page says with each request for data."""


@dataclass(frozen=True)
class ConsoleServer:
    """A server that listens on a port of its own."""

    host: ServerHost
    app: HttpApp
    port: int

    @property
    def url(self) -> str:
        """Where the server is."""
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def listening(self, client: httpx2.AsyncClient) -> AsyncIterator[EventReader]:
        """Hear what an open page hears."""
        async with client.stream("GET", f"{self.url}/console/events", headers=PAGE) as response:
            assert response.status_code == 200, response.status_code
            yield EventReader(response)


@asynccontextmanager
async def serving_console(
    container: containers.Container, settings: Mapping[str, Any] | None = None, port: int = 0, **console: Any
) -> AsyncIterator[ConsoleServer]:
    """Serve a container over HTTP on the running loop, with the console."""
    flags = {**(settings or {}), "console": {"enabled": True, **console}}
    async with ServerHost(container, flags=flags) as host:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        app = make_app(host)
        config = uvicorn.Config(
            app, http="httptools", loop="none", lifespan="off", log_config=None, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        running = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            yield ConsoleServer(host, app, listener.getsockname()[1])
        finally:
            app.sessions.end_streams()
            server.should_exit = True
            await running


async def ask_directly(
    app: HttpApp, path: str, *, client: str | None = "127.0.0.1", method: str = "GET", **headers: str
) -> tuple[int, Any]:
    """Send a request past the network, as one from wherever; gives the status and the JSON of the answer."""
    given = {"host": "127.0.0.1:8000", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "scheme": "http",
        "client": None if client is None else (client, 5000),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }
    sent: list[Mapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(body) if body.startswith(b"{") else body
