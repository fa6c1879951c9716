"""The stored events of a session, which make its streams resumable."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from axolotl_core.sessions import IEventStore, StoredEvent
from axolotl_server.http.asgi import HttpRefusal
from axolotl_server.http.event_stream import EventStream, event, priming

_log = logging.getLogger("axolotl")

_STORE_SECONDS = 5.0
"""The timeout of the store, and how long a store that exceeded it is not used."""
STREAM_END: Final = b"\x00"
"""Marks the end of a stream in a shared store; never a valid message."""
_EVENT_ID: Final = re.compile(rb"(?P<stream>[0-9a-f]{16}(?P<mark>[0-9a-f]{16})?)\.(?P<event>[!-~]{1,64})")


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
