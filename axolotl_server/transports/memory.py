"""A connection without a wire, for tests and for calls from the command line."""

import asyncio

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.handler import DefaultHandler
from axolotl_server.transports.peer import StreamPeer

__all__ = ["MemoryTransport"]


class MemoryTransport:
    """Messages in, messages out, through the real handler."""

    def __init__(self, handler: DefaultHandler, principal: Principal = ANONYMOUS) -> None:
        self._outbox: asyncio.Queue[bytes] = asyncio.Queue()
        self._peer = StreamPeer(handler, self._outbox.put_nowait, principal)

    def send(self, message: bytes) -> None:
        """Hand a message to the server."""
        self._peer.receive(message)

    async def receive(self) -> bytes:
        """Wait for the next message of the server."""
        return await self._outbox.get()

    async def close(self, drain_seconds: float = 0.0) -> list[bytes]:
        """End the connection and give what the server still said."""
        await self._peer.close(drain_seconds)
        return [self._outbox.get_nowait() for _ in range(self._outbox.qsize())]
