"""A TCP proxy between a client and a server that can drop connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Cable:
    """Forwards connections to a server; cutting it breaks all open connections, and new ones can be made at once."""

    def __init__(self, host: str, port: int) -> None:
        self._there = host, port
        self._open: set[asyncio.StreamWriter] = set()
        self._carrying: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """Break every connection."""
        for writer in self._open:
            writer.transport.abort()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a connection until one side ends it."""
        far_reader, far_writer = await asyncio.open_connection(*self._there)
        self._open |= {writer, far_writer}
        try:
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            self._open -= {writer, far_writer}


@asynccontextmanager
async def cable_to(url: str) -> AsyncIterator[tuple[Cable, str]]:
    """Start a proxy and yield it with its URL."""
    there = urlsplit(url)
    cable = Cable(there.hostname or "", there.port or 80)
    async with await asyncio.start_server(cable.carry, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        yield cable, there._replace(netloc=f"127.0.0.1:{port}").geturl()
        cable.cut()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
