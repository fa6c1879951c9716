"""A client that uses the handshake."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from axolotl_core.protocol.versions import Revision
from axolotl_examples.three_good_sources import Container
from axolotl_server import ServerHost
from tests.support.peers.memory_peer import Peer


class Session:
    """A connection in one revision that returns raw replies."""

    def __init__(self, peer: Peer, revision: Revision) -> None:
        self._peer = peer
        self.revision = revision

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request and return the whole reply."""
        return await self._peer.ask(method, params)

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call a tool and return the result."""
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return await self._peer.result("tools/call", params)

    async def refused(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call a tool and return the error."""
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return await self._peer.error("tools/call", params)


@asynccontextmanager
async def open_session(revision: Revision, **settings: Any) -> AsyncIterator[Session]:
    """Start the shipped server, with some settings changed, and perform the handshake."""
    async with ServerHost(Container(), flags=settings) as host:
        peer = await Peer(host).shake_hands(revision.name)
        try:
            yield Session(peer, revision)
        finally:
            await peer.close()
