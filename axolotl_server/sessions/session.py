"""The session of an HTTP client that uses the handshake."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeAlias

from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.wire import encode
from axolotl_core.sessions import IEventStore, hide_session_id
from axolotl_server.http.asgi import HttpRefusal
from axolotl_server.http.event_stream import EventStream, priming, retry
from axolotl_server.protocol.connection import Audience, Connection, MayHear
from axolotl_server.protocol.fair_share import Share
from axolotl_server.protocol.flow_control import Backlog, is_droppable
from axolotl_server.sessions.event_archive import Archive, EventPlace, parse_event_id

_Action: TypeAlias = Callable[[], Awaitable[None]]


class IAttached(Protocol):
    """A stream that writes to a connection."""

    def detach(self, response: EventStream) -> None:
        """Stop writing to a connection that was closed."""


class SessionStream:
    """A stream that stores every message before it is sent, so that a client that reconnects misses nothing.

    Actions run in order, in a task that exists only while there are any. A connection that resumes the stream waits for
    its turn: it gets the stored messages first, then the later ones.
    """

    def __init__(
        self,
        archive: Archive | None,
        response: EventStream | None,
        retry_seconds: float | None,
        on_end: Callable[["SessionStream"], object],
        *,
        stream_id: str,
        outlives_process: bool = False,
    ) -> None:
        """Begin on a connection; `retry_seconds` is None for clients that do not reconnect by themselves.

        Without a connection, continue a stream that began in another process. A stream that
        `outlives_process` may be continued in another process when it ends here.
        """
        self.id = stream_id
        self._archive = archive
        self._response = response
        self._retry_seconds = retry_seconds
        self._on_end = on_end
        self._outlives_process = outlives_process
        self._known = False
        self._ended = False
        self._queue: Backlog[_Action] = Backlog()
        self._turn = asyncio.Lock()
        self._working: asyncio.Task[None] | None = None
        if retry_seconds is not None and response is not None:
            self._enqueue(partial(self._prime, response))

    @property
    def connected(self) -> bool:
        """Whether a client is connected."""
        return self._response is not None and self._response.open

    @property
    def is_stored(self) -> bool:
        """Whether the client can resume the stream."""
        return self._archive is not None

    def put(self, message: bytes) -> None:
        """Send a message."""
        size = len(message) if is_droppable(message) else None
        self._enqueue(partial(self._send_message, message), droppable_bytes=size)

    def hang_up(self) -> None:
        """Close the connection if the client reconnects by itself; the stream continues."""
        self._enqueue(self._hang_up)

    def end(self) -> None:
        """End the stream after everything that was put into it."""
        self._enqueue(self._end)

    def close(self) -> None:
        """End the stream and store nothing more."""
        self._archive = None
        self.end()

    def drop_connection(self) -> None:
        """Close the connection, because the client has opened another one elsewhere."""
        if self._response is not None:
            self._response.abandon()
            self._response = None

    def detach(self, response: EventStream) -> None:
        """Stop writing to a connection that was closed."""
        if self._response is response:
            self._response = None

    async def resume(self, response: EventStream, place: EventPlace) -> None:
        """Send the messages after an event, then later ones. An earlier connection of the stream is closed.

        Raises HttpRefusal if the stream cannot be resumed.
        """
        async with self._turn:
            if self._archive is None:
                raise HttpRefusal(404, "Session not found: it has ended, initialize again")
            await self._archive.replay(response, place, primed=self._retry_seconds is not None, live=not self._ended)
            if self._response is not None:
                self._response.abandon()
            self._response = response
            if self._ended:
                response.end()

    async def wait_until_idle(self) -> None:
        """Wait until all actions are done."""
        if self._working is not None:
            await self._working

    def _enqueue(self, action: _Action, *, droppable_bytes: int | None = None) -> None:
        self._queue.put(action, droppable_bytes=droppable_bytes)
        if self._working is None:
            self._working = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._queue:
                async with self._turn:
                    await self._queue.take()()
        finally:
            self._working = None

    async def _prime(self, response: EventStream) -> None:
        event_id = await self._store_message(b"")
        if event_id is not None:
            response.write(priming(event_id))

    async def _send_message(self, message: bytes) -> None:
        event_id = await self._store_message(message)
        if self._response is not None:
            self._response.put(message, event_id)

    async def _store_message(self, message: bytes) -> str | None:
        event_id = None if self._archive is None else await self._archive.keep(self.id, message)
        self._known = self._known or event_id is not None
        return event_id

    async def _hang_up(self) -> None:
        if self._response is not None and self._retry_seconds is not None and self._known:
            self._response.write(retry(self._retry_seconds))
            self._response.end()
            self._response = None

    async def _end(self) -> None:
        self._ended = True
        if self._response is not None:
            self._response.end()
        self._on_end(self)
        if self._archive is not None and not self._outlives_process:
            await self._archive.finish(self.id)


class Session(Connection):
    """A connection that outlives its requests, bound to the principal that began it."""

    def __init__(
        self,
        principal: Principal,
        store: IEventStore | None,
        retry_seconds: float,
        session_id: bytes | None = None,
        *,
        share: Share | None = None,
    ) -> None:
        super().__init__(self._send)
        self.id = session_id or secrets.token_hex(16).encode()
        self.principal = principal
        self.share = share
        """Whom it counts for in this process."""
        self.last_used = time.monotonic()
        self._archive = None if store is None else Archive(store, hide_session_id(self.name))
        self._retry_seconds = retry_seconds
        self.has_had_streams = False
        """Whether there was ever a stream, of which messages may be stored."""
        self._streams: dict[str, SessionStream] = {}
        self._replays: dict[str, EventStream] = {}
        """The connections that get the messages of streams that have ended, by stream."""
        self._get_stream: SessionStream | None = None
        """The stream opened with GET, for messages that belong to no request."""
        self._may_hear: MayHear | None = None
        """Decides which of them its client may hear, where access is restricted."""

    @property
    def key(self) -> bytes:
        return self.id

    @property
    def name(self) -> str:
        """The ID of the session, as stores of sessions get it."""
        return self.id.decode("latin-1")

    @property
    def share_name(self) -> str | None:
        """Whom its events count for, as stores of events get it; None if only for the session itself."""
        return None if self.share is None else encode(self.share).decode()

    @property
    def in_use(self) -> bool:
        """Whether a call or connection keeps the session alive, however old its last request is."""
        return bool(self.calls) or any(stream.connected for stream in self._streams.values())

    @property
    def listening_stream(self) -> SessionStream | None:
        return self._get_stream if self._get_stream is not None and self._get_stream.connected else None

    def is_heard_by(self, audience: Audience | None) -> bool:
        return audience is None or self._may_hear is None or self._may_hear(audience)

    @property
    def reaches_client(self) -> bool:
        return self._get_stream is not None

    @property
    def polls(self) -> bool:
        """Whether the client reconnects when its connection is closed during a call."""
        return self._archive is not None and self.era is not None and self.era.revision.polling

    def open_stream(self, response: EventStream, mark: str = "") -> SessionStream:
        """Begin a stream on a connection; its ID ends with the mark, which says who may resume it."""
        return self._begin_stream(response, new_stream_id(mark))

    async def listen(self, response: EventStream, mark: str = "", may_hear: MayHear | None = None) -> SessionStream:
        """Begin the stream for messages that belong to no request; refuse with 409 if one is connected already."""
        before = self._get_stream
        if before is not None and before.connected:
            raise HttpRefusal(409, "Conflict: the session already has an open stream")
        stream = self._get_stream = self.open_stream(response, mark)
        self._may_hear = may_hear
        if before is not None:
            await self._replace(before)
        return stream

    async def resume(self, response: EventStream, last_event_id: bytes, may_hear: MayHear | None = None) -> IAttached:
        """Resume a stream after an event; of one that has ended, only stored messages are sent.

        An earlier connection of the stream is closed. Raises HttpRefusal if there is no such event.
        """
        place = parse_event_id(last_event_id)
        if self._archive is None:
            raise HttpRefusal(400, "Bad request: streams cannot be resumed here; send GET without Last-Event-ID")
        stream = self._streams.get(place.stream)
        if stream is not None:
            await stream.resume(response, place)
            if stream is self._get_stream:
                self._may_hear = may_hear
            return stream
        await self._archive.replay(response, place, primed=False, live=False)
        response.end()
        before = self._replays.get(place.stream)
        if before is not None:  # each of them holds all messages of the stream until they are read
            before.abandon()
        self._replays[place.stream] = response
        return self

    def detach(self, response: EventStream) -> None:
        """Forget a connection that got the messages of a stream that has ended."""
        self._replays = {stream: one for stream, one in self._replays.items() if one is not response}

    def stop_listening(self) -> None:
        """Close the stream opened with GET; the session continues."""
        if self._get_stream is not None:
            self._get_stream.hang_up()
            self._get_stream.end()

    def close(self) -> None:
        """End all streams, and break reference cycles, so that the memory is freed without a garbage collection."""
        for stream in tuple(self._streams.values()):
            stream.close()
        self._get_stream, self.send = None, _discard

    async def forget(self) -> None:
        """Delete the stored messages of the closed streams."""
        for stream in tuple(self._streams.values()):
            await stream.wait_until_idle()
        if self._archive is not None:
            await self._archive.forget()

    async def _replace(self, stream: SessionStream) -> None:
        stream.close()
        await stream.wait_until_idle()
        if self._archive is not None:
            await self._archive.forget(stream.id)

    def _begin_stream(
        self, response: EventStream | None, stream_id: str, *, outlives_process: bool = False
    ) -> SessionStream:
        retry_seconds = self._retry_seconds if self.polls else None
        stream = SessionStream(
            self._archive, response, retry_seconds, self._drop, stream_id=stream_id, outlives_process=outlives_process
        )
        if self._archive is not None and self.share_name is not None and not self.has_had_streams:
            self._archive.count_for(self.share_name)
        self.has_had_streams = True
        self._streams[stream_id] = stream
        return stream

    def _drop(self, stream: SessionStream) -> None:
        self._streams.pop(stream.id, None)

    def _send(self, message: bytes) -> None:
        if self._get_stream is not None:
            self._get_stream.put(message)


def new_stream_id(mark: str) -> str:
    """Make the ID of a stream; its mark is part of it, so that every process knows it, and no client can change it."""
    return secrets.token_hex(8) + mark


def _discard(message: bytes) -> None:
    """Drop a message to a session that has ended."""
