"""A stream of a session, which outlives its connections."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeAlias

from axolotl_server.backlog import Backlog, is_losable
from axolotl_server.http.event_source import priming, retry
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.http.resumption import Archive, EventPlace
from axolotl_server.http.stream import EventStream

__all__ = ["IAttached", "SessionStream"]

_Order: TypeAlias = Callable[[], Awaitable[None]]


class IAttached(Protocol):
    """What speaks on a connection."""

    def detach(self, outlet: EventStream) -> None:
        """Learn that the connection has gone."""
        ...


class SessionStream:
    """Keeps every message before it sends it, so that whoever comes back hears what was said meanwhile.

    What is asked of it is done in order, by a task that lives only while there is something to do. A connection that
    resumes the stream waits for its turn: what is kept is replayed, what is not kept yet comes after it.
    """

    def __init__(
        self,
        archive: Archive | None,
        outlet: EventStream | None,
        retry_seconds: float | None,
        on_end: Callable[["SessionStream"], object],
        *,
        token: str | None = None,
        lasting: bool = False,
    ) -> None:
        """Begin on a connection; `retry_seconds` is None for clients that do not come back when they are sent away.

        Without a connection it goes on with the stream of that token, which began elsewhere. A `lasting` stream may
        go on elsewhere when it ends here.
        """
        self.token = token or secrets.token_hex(8)
        self._archive = archive
        self._outlet = outlet
        self._retry_seconds = retry_seconds
        self._on_end = on_end
        self._lasting = lasting
        self._known = False
        self._ended = False
        self._orders: Backlog[_Order] = Backlog()
        self._turn = asyncio.Lock()
        self._working: asyncio.Task[None] | None = None
        if retry_seconds is not None and outlet is not None:
            self._order(partial(self._prime, outlet))

    @property
    def connected(self) -> bool:
        """Whether somebody listens."""
        return self._outlet is not None and self._outlet.open

    def put(self, message: bytes) -> None:
        """Send a message."""
        self._order(partial(self._tell, message), losable=is_losable(message))

    def hang_up(self) -> None:
        """End the connection and go on, if the client knows how to come back."""
        self._order(self._hang_up)

    def end(self) -> None:
        """End the stream after all that was put into it."""
        self._order(self._end)

    def close(self) -> None:
        """End the stream and keep nothing more."""
        self._archive = None
        self.end()

    def leave(self) -> None:
        """End the connection: its client has opened another one elsewhere."""
        if self._outlet is not None:
            self._outlet.abandon()
            self._outlet = None

    def detach(self, outlet: EventStream) -> None:
        """Learn that a connection has gone."""
        if self._outlet is outlet:
            self._outlet = None

    async def resume(self, outlet: EventStream, place: EventPlace) -> None:
        """Send what followed an event, then what comes; a connection that the stream still has is ended.

        Raises:
            HttpRefusal: if the stream cannot be resumed.
        """
        async with self._turn:
            if self._archive is None:
                raise HttpRefusal(404, "Session not found: it has ended, initialize again")
            await self._archive.replay(outlet, place, primed=self._retry_seconds is not None, live=not self._ended)
            if self._outlet is not None:
                self._outlet.abandon()
            self._outlet = outlet
            if self._ended:
                outlet.end()

    async def settled(self) -> None:
        """Wait until everything that was asked for is done."""
        if self._working is not None:
            await self._working

    def _order(self, order: _Order, *, losable: bool = False) -> None:
        self._orders.put(order, losable=losable)
        if self._working is None:
            self._working = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._orders:
                async with self._turn:
                    await self._orders.take()()
        finally:
            self._working = None

    async def _prime(self, outlet: EventStream) -> None:
        event_id = await self._keep(b"")
        if event_id is not None:
            outlet.write(priming(event_id))

    async def _tell(self, message: bytes) -> None:
        event_id = await self._keep(message)
        if self._outlet is not None:
            self._outlet.put(message, event_id)

    async def _keep(self, message: bytes) -> str | None:
        event_id = None if self._archive is None else await self._archive.keep(self.token, message)
        self._known = self._known or event_id is not None
        return event_id

    async def _hang_up(self) -> None:
        if self._outlet is not None and self._retry_seconds is not None and self._known:
            self._outlet.write(retry(self._retry_seconds))
            self._outlet.end()
            self._outlet = None

    async def _end(self) -> None:
        self._ended = True
        if self._outlet is not None:
            self._outlet.end()
        self._on_end(self)
        if self._archive is not None and not self._lasting:
            await self._archive.finish(self.token)
