"""A client that uses the handshake."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from axolotl_core.protocol.versions import Revision
from axolotl_examples.three_good_sources import Container
from axolotl_server import ServerHost
from axolotl_server.transports.stream_exchange import MemoryTransport


class Session:
    """A connection in one revision that returns raw replies."""

    def __init__(self, transport: MemoryTransport, revision: Revision) -> None:
        self._transport = transport
        self.revision = revision

    async def initialize(self) -> None:
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": self.revision.name, "capabilities": {}, "clientInfo": client}
        reply = await self.request("initialize", params)
        assert reply["result"]["protocolVersion"] == self.revision.name
        self._send({"method": "notifications/initialized"})

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request and return the whole reply."""
        self._send({"id": 1, "method": method, "params": params or {}})
        return json.loads(await self._transport.receive())

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call a tool and return the result."""
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return (await self.request("tools/call", params))["result"]

    async def refused(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call a tool and return the error."""
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return (await self.request("tools/call", params))["error"]

    def _send(self, message: Mapping[str, Any]) -> None:
        self._transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode())


@asynccontextmanager
async def open_session(revision: Revision, **settings: Any) -> AsyncIterator[Session]:
    """Start the shipped server, with some settings changed, and perform the handshake."""
    async with ServerHost(Container(), flags=settings) as host:
        transport = MemoryTransport(host.handler)
        try:
            session = Session(transport, revision)
            await session.initialize()
            yield session
        finally:
            await transport.close()
