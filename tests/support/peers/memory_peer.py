"""A client of the memory transport, and containers with every kind of feature."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

from dependency_injector import containers, providers

from axolotl_core import Principal
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY
from axolotl_server import ServerHost
from axolotl_server.protocol.connection import Connection
from tests.support.peers.memory_transport import MemoryTransport
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

    def __init__(
        self, host: ServerHost, principal: Principal = ANONYMOUS, *, capabilities: Mapping[str, Any] = ABLE
    ) -> None:
        self.transport = MemoryTransport(host.handler, principal)
        self.capabilities = capabilities
        self.unread: list[Any] = []
        """Messages that arrived while the client waited for another one, in their order."""
        self.handshake: Any = None
        """The result of the handshake."""
        self._ids = itertools.count(1)
        self._stateless = True

    @property
    def connection(self) -> Connection:
        """The server's state of this client."""
        return self.transport._exchange.connection()

    @property
    def heard(self) -> list[Any]:
        """The unread notifications and requests of the server."""
        return [said for said in self.unread if "method" in said]

    async def shake_hands(self, version: str = "2025-11-25") -> Self:
        """Perform the handshake."""
        self._stateless = False
        hello = {**INITIALIZE, "protocolVersion": version, "capabilities": self.capabilities}
        self.transport.send(message("initialize", hello, id="hello"))
        self.handshake = (await self.reply("hello"))["result"]
        assert self.handshake["protocolVersion"] == version
        self.notify("notifications/initialized")
        return self

    def send(
        self, method: str, params: Mapping[str, Any] | None = None, *, id: int | str | None = None, **meta: Any
    ) -> int | str:
        """Send a request and return its id, which is the next number unless it is given."""
        own = {**META, CLIENT_CAPABILITIES_KEY: self.capabilities} if self._stateless else {}
        number = next(self._ids) if id is None else id
        given = params or {}
        self.transport.send(message(method, {**given, "_meta": {**own, **given.get("_meta", {}), **meta}}, id=number))
        return number

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, id: int | str | None = None, **meta: Any
    ) -> int | str:
        """Call a tool and return the id of the request."""
        return self.send("tools/call", {"name": name, "arguments": arguments or {}}, id=id, **meta)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.transport.send(message(method, params, id=None))

    def cancel(self, number: int | str) -> None:
        """Cancel a request."""
        self.notify("notifications/cancelled", {"requestId": number})

    def answer(self, question: Any, result: Any) -> None:
        """Answer a request of the server."""
        self.transport.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode())

    async def receive(self) -> Any:
        """Wait for the next message."""
        return self.unread.pop(0) if self.unread else await self._read()

    async def reply(self, number: int | str) -> Any:
        """Wait for the reply to a request."""
        return await self._find(lambda said: "method" not in said and said["id"] == number)

    async def hear(self, method: str) -> Any:
        """Wait for a notification or request of the server."""
        return await self._find(lambda said: said.get("method") == method)

    async def ask(
        self, method: str, params: Mapping[str, Any] | None = None, *, id: int | str | None = None, **meta: Any
    ) -> Any:
        """Send a request and wait for its reply."""
        reply = await self.reply(self.send(method, params, id=id, **meta))
        # Where tasks start eagerly, the reply may be there already. A test that polls must still let others run.
        await asyncio.sleep(0)
        return reply

    async def result(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> Any:
        """Send a request and wait for its result."""
        reply = await self.ask(method, params, **meta)
        assert "result" in reply, reply
        return reply["result"]

    async def error(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> Any:
        """Send a request and wait for its error."""
        reply = await self.ask(method, params, **meta)
        assert "error" in reply, reply
        return reply["error"]

    async def settle(self) -> None:
        """Read everything that the server has sent so far."""
        await self.ask("tools/list" if self._stateless else "ping")

    async def close(self, seconds: float = PATIENCE_SECONDS) -> list[Any]:
        """End the connection, wait some time for running calls, and return the remaining messages."""
        return self.unread + [json.loads(said) for said in await self.transport.close(seconds)]

    async def _find(self, matches: Callable[[Any], bool]) -> Any:
        for place, said in enumerate(self.unread):
            if matches(said):
                return self.unread.pop(place)
        while not matches(said := await self._read()):
            self.unread.append(said)
        return said

    async def _read(self) -> Any:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return json.loads(await self.transport.receive())


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
