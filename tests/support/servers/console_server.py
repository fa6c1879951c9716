"""Servers with a console, and clients of it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from dependency_injector import containers

from axolotl_server import HttpApp, ServerHost
from axolotl_server.extensions.console.console import Console
from tests.support.peers.session_client import EventReader
from tests.support.servers.serving import free_port, serving

TOKEN = "the-token-of-the-console"
PAGE = {"X-Axolotl-Console": TOKEN}
"""The headers of the page's requests for data."""


def console_of(host: ServerHost) -> Console:
    """Return the console of a server."""
    found = host.extension(Console)
    assert found is not None
    return found


@dataclass(frozen=True)
class ConsoleServer:
    """A server on its own port."""

    host: ServerHost
    app: HttpApp
    port: int

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def link(self) -> str:
        """The link that the server prints."""
        return console_of(self.host).link(self.url)

    @asynccontextmanager
    async def listening(self, client: httpx2.AsyncClient) -> AsyncIterator[EventReader]:
        """Yield the events that an open page receives."""
        async with client.stream("GET", f"{self.url}/console/events", headers=PAGE) as response:
            assert response.status_code == 200, response.status_code
            yield EventReader(response)


@asynccontextmanager
async def serving_console(
    container: containers.Container, settings: Mapping[str, Any] | None = None, port: int = 0, **console: Any
) -> AsyncIterator[ConsoleServer]:
    """Serve a container over HTTP on the running loop, with the console."""
    flags = {**(settings or {}), "console": {"enabled": True, "token": TOKEN, **console}}
    async with serving(container, flags, free_port(port)) as server:
        yield ConsoleServer(server.host, server.app, server.port)


async def ask_directly(
    app: HttpApp, path: str, *, client: str | None = "127.0.0.1", method: str = "GET", **headers: str
) -> tuple[int, Any]:
    """Send a request from any address, bypassing the network; returns the status and the JSON."""
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
