"""A client of the memory transport, and containers with every kind of feature."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from dependency_injector import containers, providers

from axolotl_core import Principal
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY
from axolotl_server import ServerHost
from axolotl_server.messages.connection import Connection
from axolotl_server.transports.stream_exchange import MemoryTransport
from tests.support.peers.wire import INITIALIZE, META, message
from tests.support.servers.serving import PATIENCE_SECONDS

ABLE: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""The capabilities of a client that supports every kind of question."""
ACCEPTED: Mapping[str, Any] = {"action": "accept", "content": {"name": "Ann"}}
"""An answer to a form that asks for a name."""


def container_with(
    tools: Sequence[Any] = (),
    prompts: Sequence[Any] = (),
    resources: Sequence[Any] = (),
    **roles: Any,
) -> containers.DynamicContainer:
    """Create a container with features and other roles."""
    container = containers.DynamicContainer()
    given = {"tools": tools, "prompts": prompts, "resources": resources}
    for role, value in {**{role: features for role, features in given.items() if features}, **roles}.items():
        setattr(container, role, providers.Object(value))
    return container


class Peer:
    """A client in this process, with a handshake or with an envelope in every request."""

    def __init__(self, host: ServerHost, *, capabilities: Mapping[str, Any] = ABLE, principal: Principal = ANONYMOUS):
        self.transport = MemoryTransport(host.handler, principal)
        self._capabilities = capabilities
        self._stateless = True

    @property
    def connection(self) -> Connection:
        """The server's state of this client."""
        return self.transport._exchange.connection()

    async def shake_hands(self, version: str = "2025-11-25") -> "Peer":
        """Perform the handshake."""
        self._stateless = False
        hello = {**INITIALIZE, "protocolVersion": version, "capabilities": self._capabilities}
        self.transport.send(message("initialize", hello, id="hello"))
        assert (await self.receive())["result"]["protocolVersion"] == version
        self.notify("notifications/initialized")
        return self

    def send(self, method: str, params: Mapping[str, Any] | None = None, *, id: int | str = 1, **meta: Any) -> None:
        said = {**META, CLIENT_CAPABILITIES_KEY: self._capabilities, **meta} if self._stateless else meta
        self.transport.send(message(method, {**(params or {}), "_meta": said}, id=id))

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, id: int | str = 1, **meta: Any) -> None:
        self.send("tools/call", {"name": name, "arguments": arguments or {}}, id=id, **meta)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.transport.send(message(method, params, id=None))

    def answer(self, question: Any, result: Any) -> None:
        """Answer a request of the server."""
        self.transport.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode())

    async def receive(self) -> Any:
        """Wait for the next message."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return json.loads(await self.transport.receive())

    async def ask(self, method: str, params: Mapping[str, Any] | None = None, *, id: int | str = 1, **meta: Any) -> Any:
        """Send a request and wait for the next message."""
        self.send(method, params, id=id, **meta)
        return await self.receive()

    async def close(self) -> list[Any]:
        """End the connection and return the remaining messages."""
        return [json.loads(one) for one in await self.transport.close(PATIENCE_SECONDS)]


@asynccontextmanager
async def conversing(
    container: containers.Container, *, settings: Mapping[str, Any] | None = None
) -> AsyncIterator[ServerHost]:
    """Serve a container to peers, and check that nothing runs in the end."""
    async with ServerHost(container, flags=settings) as host:
        yield host
        assert not host.handler.inflight
        assert not host.handler.subscriptions._listeners


def text_of(reply: Any) -> str:
    """Return the text of a tool result."""
    text: str = reply["result"]["content"][0]["text"]
    return text
