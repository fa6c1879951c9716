"""Connections that tests share, because opening one takes longer than most tests."""

import asyncio

import anyio

from tests.support.clients.client_adapters import IPeer
from tests.support.clients.client_routes import Way
from tests.support.clients.connections import Places, connected


class Lines:
    """One connection per route, opened when it is first used."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._peers: dict[Way, IPeer] = {}
        self._holders: list[asyncio.Task[None]] = []
        self._closing = asyncio.Event()

    async def to(self, way: Way) -> IPeer:
        """Return the client of a route, with its simulated user reset."""
        if way not in self._peers:
            opened: asyncio.Future[IPeer] = asyncio.get_running_loop().create_future()
            self._holders.append(asyncio.create_task(self._hold(way, opened)))
            self._peers[way] = await opened
        peer = self._peers[way]
        peer.refresh()
        return peer

    async def close(self) -> None:
        self._closing.set()
        await asyncio.gather(*self._holders)

    async def _hold(self, way: Way, opened: asyncio.Future[IPeer]) -> None:
        """Enter and leave a connection in the same task, as the libraries require."""
        try:
            async with connected(way, self._places) as peer:
                opened.set_result(peer)
                await self._closing.wait()
        except Exception as error:
            if not opened.done():
                opened.set_exception(error)
            elif way.transport != "sse" or not _is_late_message(error):
                raise


def _is_late_message(error: Exception) -> bool:
    """Recognize an error of the libraries' SSE transport when a message arrives during closing."""
    return isinstance(error, ExceptionGroup) and error.split(anyio.BrokenResourceError)[1] is None
