"""A client at the end of a memory transport, and containers with every kind of feature for it."""

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
"""What a client declares that can be asked everything."""
ACCEPTED: Mapping[str, Any] = {"action": "accept", "content": {"name": "Ann"}}
"""An answer to a form that asks for a name."""


def container_with(
    tools: Sequence[Any] = (),
    prompts: Sequence[Any] = (),
    resources: Sequence[Any] = (),
    **roles: Any,
) -> containers.DynamicContainer:
    """Put features into a container; other roles by their names."""
    container = containers.DynamicContainer()
    given = {"tools": tools, "prompts": prompts, "resources": resources}
    for role, value in {**{role: features for role, features in given.items() if features}, **roles}.items():
        setattr(container, role, providers.Object(value))
    return container


class Peer:
    """Speaks to a handler in this process: with a handshake, or with an envelope around every request."""

    def __init__(self, host: ServerHost, *, capabilities: Mapping[str, Any] = ABLE, principal: Principal = ANONYMOUS):
        self.transport = MemoryTransport(host.handler, principal)
        self._capabilities = capabilities
        self._stateless = True

    @property
    def connection(self) -> Connection:
        """What the server knows of this client."""
        return self.transport._peer.connection()

    async def shake_hands(self, version: str = "2025-11-25") -> "Peer":
        """Begin as clients of the older revisions do."""
        self._stateless = False
        hello = {**INITIALIZE, "protocolVersion": version, "capabilities": self._capabilities}
        self.transport.send(message("initialize", hello, id="hello"))
        assert (await self.receive())["result"]["protocolVersion"] == version
        self.notify("notifications/initialized")
        return self

    def send(self, method: str, params: Mapping[str, Any] | None = None, *, id: int | str = 1, **meta: Any) -> None:
        """Send a request."""
        said = {**META, CLIENT_CAPABILITIES_KEY: self._capabilities, **meta} if self._stateless else meta
        self.transport.send(message(method, {**(params or {}), "_meta": said}, id=id))

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, id: int | str = 1, **meta: Any) -> None:
        """Call a tool."""
        self.send("tools/call", {"name": name, "arguments": arguments or {}}, id=id, **meta)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
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
        """End the connection and give what the server still says."""
        return [json.loads(one) for one in await self.transport.close(PATIENCE_SECONDS)]


@asynccontextmanager
async def conversing(
    container: containers.Container, *, settings: Mapping[str, Any] | None = None
) -> AsyncIterator[ServerHost]:
    """Serve a container to peers, and see that nothing runs in the end."""
    async with ServerHost(container, flags=settings) as host:
        yield host
        assert not host.handler.inflight
        assert not host.handler.subscriptions._listeners


def text_of(reply: Any) -> str:
    """Give the text of a tool's answer."""
    text: str = reply["result"]["content"][0]["text"]
    return text
