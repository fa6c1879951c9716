"""A connection in this process, for tests that send and receive bytes."""

import asyncio

from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.handler import DefaultHandler
from axolotl_server.transports.stream_exchange import StreamExchange


class MemoryTransport:
    """A connection without a wire."""

    def __init__(self, handler: DefaultHandler, principal: Principal = ANONYMOUS) -> None:
        self._outbox: asyncio.Queue[bytes] = asyncio.Queue()
        self._exchange = StreamExchange(handler, self._outbox.put_nowait, principal)

    def send(self, message: bytes) -> None:
        """Send a message to the server."""
        self._exchange.receive(message)

    async def receive(self) -> bytes:
        """Wait for the next message from the server."""
        return await self._outbox.get()

    async def close(self, drain_seconds: float = 0.0) -> list[bytes]:
        """Close the connection and return the messages that were not received yet."""
        await self._exchange.close(drain_seconds)
        return [self._outbox.get_nowait() for _ in range(self._outbox.qsize())]
