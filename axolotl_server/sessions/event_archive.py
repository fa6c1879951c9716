"""The stored events of a session, which make its streams resumable, also in other processes."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from axolotl_core.sessions import IEventStore, StoredEvent
from axolotl_server.http.asgi import HttpRefusal
from axolotl_server.http.event_stream import EventStream, event, priming, retry

_log = logging.getLogger("axolotl")

_STORE_SECONDS = 5.0
"""The timeout of the store, and how long a store that exceeded it is not used."""
STREAM_END: Final = b"\x00"
"""Marks the end of a stream in a shared store; never a valid message."""
_EVENT_ID: Final = re.compile(rb"(?P<stream>[0-9a-f]{16}(?P<mark>[0-9a-f]{16})?)\.(?P<event>[!-~]{1,64})")
_ANSWER_SECONDS: Final = 1.0
_MAX_MISSED_ANSWERS: Final = 3
"""After how many unanswered questions the process of a stream is considered dead."""


class EventPlace(NamedTuple):
    """The position of an event: its stream, and its id in the store."""

    stream: str
    event: str
    mark: str = ""
    """The part of the stream's ID that says who may resume it; empty where access is not restricted."""

    @property
    def wire_id(self) -> str:
        """The id that the client sees, which is unique across streams."""
        return f"{self.stream}.{self.event}"


def parse_event_id(last_event_id: bytes) -> EventPlace:
    """Parse the id that a client resumes from; refuse a malformed one with 400."""
    match = _EVENT_ID.fullmatch(last_event_id)
    if match is None:
        raise unknown_event()
    return EventPlace(match["stream"].decode(), match["event"].decode(), (match["mark"] or b"").decode())


class Archive:
    """The events of one session. If the store fails or hangs, streams cannot be resumed, but everything else works."""

    def __init__(self, store: IEventStore, session: str) -> None:
        self._store = store
        self._session = session
        self._usable_from = 0.0
        self.on_stored: Callable[[str, bytes], object] | None = None
        """Gets every message and its stream, if other processes may follow the stream; they need its end, too."""

    def count_for(self, share: str) -> None:
        """Note whom the events count for."""
        self._store.count_for(self._session, share)

    async def keep(self, stream: str, message: bytes) -> str | None:
        """Store a message and return its id on the wire; None if the store failed."""
        event_id = await self._store_message(stream, message)
        if self.on_stored is not None:
            self.on_stored(stream, message)
        return event_id

    async def _store_message(self, stream: str, message: bytes) -> str | None:
        if time.monotonic() < self._usable_from:
            return None
        try:
            async with asyncio.timeout(_STORE_SECONDS) as timer:
                return EventPlace(stream, await self._store.append(self._session, stream, message)).wire_id
        except Exception:
            if timer.expired():
                self._usable_from = time.monotonic() + _STORE_SECONDS
            _log.exception("the event store failed to store an event, which is sent without an id")
            return None

    async def replay(self, response: EventStream, place: EventPlace, *, primed: bool, live: bool) -> None:
        """Send the events after one of the same stream.

        Refuse with 400 if the event is not stored and the stream has ended, with 503 if the store fails.
        """
        events = await self.after(place)
        if events is None and not live:
            raise unknown_event()
        if primed:  # repeat the client's id, so that nothing is lost if this connection breaks at once
            response.write(priming(place.wire_id))
        for known in events or ():
            if known.message and known.message != STREAM_END:
                response.write(event(known.message, EventPlace(place.stream, known.id).wire_id))

    async def finish(self, stream: str) -> None:
        """Mark the end of a stream, if other processes need to know it."""
        if self.on_stored is not None:
            await self.keep(stream, STREAM_END)

    async def forget(self, stream: str | None = None) -> None:
        """Delete the events of a stream, or all of them."""
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                await self._store.forget(self._session, stream)
        except Exception:
            _log.exception("the event store failed to delete the events of a session")

    async def after(self, place: EventPlace) -> Sequence[StoredEvent] | None:
        """Return the events after one of the same stream; None if that one is not stored."""
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                return await self._store.after(self._session, place.stream, place.event)
        except Exception:
            _log.exception("the event store failed, so a stream cannot be resumed")
            raise HttpRefusal(503, "Service unavailable: the stream cannot be resumed now, try again later") from None


def unknown_event() -> HttpRefusal:
    """Make the refusal for an event that is not stored."""
    return HttpRefusal(400, "Bad request: this event is not stored; send GET without Last-Event-ID for a new stream")


class StreamFollower:
    """Sends the stored events of a stream, in order, and then new ones.

    It looks for events whenever it is woken. If that does not happen, it asks whether a process still writes to the
    stream: the answer wakes it, and without an answer the connection ends.
    """

    def __init__(
        self,
        archive: Archive,
        place: EventPlace,
        response: EventStream,
        ask: Callable[[], Awaitable[bool]] | None,
        on_end: Callable[["StreamFollower"], object],
    ) -> None:
        """Resume after an event; `ask` is None if this process writes to the stream itself."""
        self.stream = place.stream
        self._archive = archive
        self._place = place
        self._response = response
        self._ask = ask
        self._on_end = on_end
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether a client is connected."""
        return self._response.open

    async def begin(self, *, primed: bool) -> None:
        """Send the stored events, and follow the stream unless it has ended.

        Refuse with 400 if the event is not stored and no process writes to its stream, with 503 if the store fails.
        """
        is_alive = self._ask is None or await self._ask()
        events = await self._archive.after(self._place)
        if events is None:
            await self._start_at_present(is_alive)
        if primed:
            self._response.write(priming(self._place.wire_id))
        if self._send(events or ()) and is_alive:
            self._task = asyncio.get_running_loop().create_task(self._follow())
        else:
            self._response.end()

    def wake(self) -> None:
        """Look for new events."""
        self._wake.set()

    def drop_connection(self) -> None:
        """Close the connection, because its client has opened another one."""
        self._response.abandon()

    def send_away(self, seconds: float | None) -> None:
        """Close the connection, and let its client reconnect for the rest."""
        if seconds is not None:
            self._response.write(retry(seconds))
        self._response.end()

    def detach(self, response: EventStream) -> None:
        """Stop following, because the connection was closed."""
        if self._task is not None:
            self._task.cancel()
        self._on_end(self)

    async def _start_at_present(self, is_alive: bool) -> None:
        """Start at the present end of the stream, because the client's event is no longer stored."""
        if not is_alive or (self._ask is not None and not await self._answered()):
            raise unknown_event()
        event_id = await self._archive.keep(self.stream, b"")
        if event_id is None:
            raise HttpRefusal(503, "Service unavailable: the stream cannot be resumed now, try again later")
        self._place = parse_event_id(event_id.encode())

    async def _answered(self) -> bool:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    async def _follow(self) -> None:
        missed = 0
        try:
            while self._response.open:
                if self._ask is None:
                    await self._wake.wait()
                    self._wake.clear()
                elif await self._answered():
                    missed = 0
                else:
                    missed += 1
                    if missed > _MAX_MISSED_ANSWERS or not await self._ask():
                        break
                if not self._send(await self._archive.after(self._place) or ()):
                    break
        except HttpRefusal:  # the store is unavailable; the client may reconnect later
            pass
        finally:
            self._response.end()

    def _send(self, events: Sequence[StoredEvent]) -> bool:
        """Send events; return False if the stream ends with them."""
        for known in events:
            if known.message == STREAM_END:
                return False
            self._place = EventPlace(self.stream, known.id)
            if known.message:
                self._response.put(known.message, self._place.wire_id)
        return True
