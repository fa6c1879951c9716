"""A client for any revision and transport, which checks every message against the revision's schema."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import pytest
from dependency_injector import containers

from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import REVISIONS, Revision
from axolotl_core.protocol.wire import encode
from axolotl_server import ServerHost
from tests.support.servers.serving import PATIENCE_SECONDS, BackgroundServers
from tests.transcripts.players import HttpPlayer, MemoryPlayer, Player, StdioPlayer
from tests.transcripts.rules import WireRules

CLIENT = {"name": "example-test", "version": "1"}
EVERYWHERE = [
    pytest.param(revision, transport, id=f"{revision.name}-{transport}")
    for revision in REVISIONS
    for transport in ("stdio", "http")
]


class Dialogue:
    """A client."""

    def __init__(self, player: Player, revision: Revision) -> None:
        self.revision = revision
        self.notices: list[Any] = []
        """Messages of the server that are not replies."""
        self._player = player
        self._rules = WireRules(revision)
        self._ids = itertools.count(100)

    async def open(self) -> None:
        """Perform the handshake, if the revision has one, and wait until the server has processed it."""
        if not self.revision.stateless:
            await self.begin()
            await self.send("notifications/initialized")
            await self.ask("ping")

    async def begin(self) -> Any:
        """Send the handshake without its confirmation."""
        return await self.ask(
            "initialize", {"protocolVersion": self.revision.name, "capabilities": {}, "clientInfo": CLIENT}
        )

    async def send(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: int | str | None = None,
        token: int | str | None = None,
    ) -> None:
        """Send a notification, or a request without waiting for its reply."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if id is not None:
            message["id"] = id
        message["params"] = {**(params or {}), **self._envelope(token)}
        self._rules.sent(message)
        await self._player.send(encode(message))

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: int | str | None = None,
        token: int | str | None = None,
    ) -> Any:
        """Send a request and wait for its reply; notifications before it are kept."""
        number = next(self._ids) if id is None else id
        await self.send(method, params, id=number, token=token)
        while True:
            message = await self.hear()
            if message.get("id") == number:
                return message
            self.notices.append(message)

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Any:
        return await self.ask("tools/call", {"name": name, "arguments": arguments or {}}, **options)

    async def names(self) -> list[str]:
        """List the names of the tools."""
        return [tool["name"] for tool in (await self.ask("tools/list"))["result"]["tools"]]

    async def hear(self) -> Any:
        """Wait for the server's next message."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            message = (await self._player.receive()).message
        self._rules.check(message)
        return message

    def _envelope(self, token: int | str | None) -> Mapping[str, Any]:
        meta: dict[str, Any] = {} if token is None else {"progressToken": token}
        if self.revision.stateless:
            meta |= {PROTOCOL_VERSION_KEY: self.revision.name, CLIENT_CAPABILITIES_KEY: {}}
        return {"_meta": meta} if meta else {}


@asynccontextmanager
async def in_memory(
    container: containers.Container,
    revision: Revision,
    settings: Mapping[str, Any] | None = None,
    *,
    ready: bool = True,
) -> AsyncIterator[Dialogue]:
    """Connect to the server of a container in this process."""
    async with ServerHost(container, flags=settings) as host:
        player = MemoryPlayer(host)
        dialogue = Dialogue(player, revision)
        if ready:
            await dialogue.open()
        yield dialogue
        await player.finish()


class Servers:
    """Serves targets like `axolotl serve`: one process per stdio server, one port per HTTP server."""

    def __init__(self) -> None:
        self._http = BackgroundServers()

    @asynccontextmanager
    async def over(self, transport: str, target: str, revision: Revision) -> AsyncIterator[Dialogue]:
        """Connect to the server of a target."""
        player: Player
        if transport == "stdio":
            player = await StdioPlayer.start(target)
        else:
            module, _, container = target.partition(":")
            player = HttpPlayer(self._http.url(getattr(import_module(module), container)), revision)
        dialogue = Dialogue(player, revision)
        try:
            await dialogue.open()
            yield dialogue
        finally:
            await player.finish()

    def close(self) -> None:
        self._http.close()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Servers that run for the whole test module."""
    running = Servers()
    yield running
    running.close()
