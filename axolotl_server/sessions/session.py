"""The session of an HTTP client that uses the handshake."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeAlias

from axolotl_core.protocol.identity import Principal
from axolotl_core.sessions import IEventStore
from axolotl_server.asgi.event_stream import EventStream, priming, retry
from axolotl_server.asgi.http import HttpRefusal
from axolotl_server.messages.connection import Connection
from axolotl_server.messages.flow_control import Backlog, is_droppable
from axolotl_server.sessions.event_archive import Archive, EventPlace, place_of

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
        self._order(partial(self._tell, message), droppable=is_droppable(message))

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

    def _order(self, order: _Order, *, droppable: bool = False) -> None:
        self._orders.put(order, droppable=droppable)
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


class Session(Connection):
    """A connection that lives across requests, bound to the principal that began it."""

    __slots__ = ("_archive", "_retry_seconds", "_standalone", "_streams", "has_spoken", "id", "last_used", "principal")

    def __init__(
        self, principal: Principal, store: IEventStore | None, retry_seconds: float, session_id: bytes | None = None
    ) -> None:
        super().__init__(self._send)
        self.id = session_id or secrets.token_hex(16).encode()
        self.principal = principal
        self.last_used = time.monotonic()
        self._archive = None if store is None else Archive(store, self.id.decode())
        self._retry_seconds = retry_seconds
        self.has_spoken = False
        """Whether there was ever a stream, of which something may be kept."""
        self._streams: dict[str, SessionStream] = {}
        self._standalone: SessionStream | None = None
        """The stream for what the server says unasked, from the first GET on."""

    @property
    def in_use(self) -> bool:
        """Whether something keeps the session alive however old its last request is."""
        return bool(self.calls) or any(stream.connected for stream in self._streams.values())

    @property
    def polls(self) -> bool:
        """Whether the client comes back when it is sent away in the middle of a call."""
        return self._archive is not None and self.era is not None and self.era.revision.polling

    def open_stream(self, outlet: EventStream) -> SessionStream:
        """Begin a stream on a connection."""
        stream = SessionStream(self._archive, outlet, self._retry_seconds if self.polls else None, self._drop)
        self.has_spoken = True
        self._streams[stream.token] = stream
        return stream

    async def listen(self, outlet: EventStream) -> SessionStream:
        """Begin the stream for what the server says unasked, anew if there was one.

        Raises:
            HttpRefusal: 409 if somebody listens already.
        """
        before = self._standalone
        if before is not None and before.connected:
            raise HttpRefusal(409, "Conflict: the session has an open stream already")
        stream = self._standalone = self.open_stream(outlet)
        if before is not None:
            await self._replace(before)
        return stream

    async def resume(self, outlet: EventStream, last_event_id: bytes) -> IAttached | None:
        """Go on with a stream after an event; the answer is None if the stream has ended and only what is kept is sent.

        Raises:
            HttpRefusal: if there is no such event.
        """
        place = place_of(last_event_id)
        if self._archive is None:
            raise HttpRefusal(400, "Bad request: streams cannot be resumed here; send GET without Last-Event-ID")
        stream = self._streams.get(place.stream)
        if stream is not None:
            await stream.resume(outlet, place)
            return stream
        await self._archive.replay(outlet, place, primed=False, live=False)
        outlet.end()
        return None

    def stop_listening(self) -> None:
        """Send a client that listens away; the session goes on."""
        if self._standalone is not None:
            self._standalone.hang_up()
            self._standalone.end()

    def close(self) -> None:
        """End all streams, and refer to itself no more: what has ended shall go at once, and not with a collection."""
        for stream in tuple(self._streams.values()):
            stream.close()
        self._standalone, self.send = None, _say_nothing

    async def forget(self) -> None:
        """Forget what was said on the streams, which are closed."""
        for stream in tuple(self._streams.values()):
            await stream.settled()
        if self._archive is not None:
            await self._archive.forget()

    async def _replace(self, stream: SessionStream) -> None:
        stream.close()
        await stream.settled()
        if self._archive is not None:
            await self._archive.forget(stream.token)

    def _drop(self, stream: SessionStream) -> None:
        self._streams.pop(stream.token, None)

    def _send(self, message: bytes) -> None:
        if self._standalone is not None:
            self._standalone.put(message)


def _say_nothing(message: bytes) -> None:
    """Drop what somebody says to a session that has ended."""
