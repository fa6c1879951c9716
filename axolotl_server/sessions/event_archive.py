"""The events of a session that several processes serve."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from axolotl_core.sessions import IEventStore, StoredEvent
from axolotl_server.asgi.event_stream import EventStream, event, priming
from axolotl_server.asgi.http import HttpRefusal

_log = logging.getLogger("axolotl")

_STORE_SECONDS = 5.0
"""How long a store may take for an answer, and how long one that took longer is left alone."""
STREAM_END: Final = b"\x00"
"""What closes a stream in a store that several processes share: no message looks like this."""
_EVENT_ID: Final = re.compile(rb"(?P<stream>[0-9a-f]{16})\.(?P<event>[!-~]{1,64})")


class EventPlace(NamedTuple):
    """Where an event stands: on which stream, and under which id of the store."""

    stream: str
    event: str

    @property
    def wire_id(self) -> str:
        """The id that the client sees; it names the stream, so that no two streams share one."""
        return f"{self.stream}.{self.event}"


def place_of(last_event_id: bytes) -> EventPlace:
    """Read the id that a client came back with.

    Raises:
        HttpRefusal: 400 if it is none of ours.
    """
    match = _EVENT_ID.fullmatch(last_event_id)
    if match is None:
        raise unknown_event()
    return EventPlace(match["stream"].decode(), match["event"].decode())


class Archive:
    """The events of one session; a store that fails, or does not answer, costs resumption and nothing else."""

    def __init__(self, store: IEventStore, session: str) -> None:
        self._store = store
        self._session = session
        self._trusted_from = 0.0

    async def keep(self, stream: str, message: bytes) -> str | None:
        """Keep a message and give its id on the wire, None if it could not be kept."""
        if time.monotonic() < self._trusted_from:
            return None
        try:
            async with asyncio.timeout(_STORE_SECONDS) as patience:
                return EventPlace(stream, await self._store.append(self._session, stream, message)).wire_id
        except Exception:
            if patience.expired():
                self._trusted_from = time.monotonic() + _STORE_SECONDS
            _log.exception("the event store does not take an event: it is sent without an id")
            return None

    async def replay(self, outlet: EventStream, place: EventPlace, *, primed: bool, live: bool) -> None:
        """Send what followed an event on its stream, and nothing else.

        Raises:
            HttpRefusal: 400 if nothing is known of it any more and the stream has ended, 503 if the store fails.
        """
        events = await self.after(place)
        if events is None and not live:
            raise unknown_event()
        if primed:  # the id that the client has, lest it loses what follows if this connection breaks at once
            outlet.write(priming(place.wire_id))
        for known in events or ():
            if known.message and known.message != STREAM_END:
                outlet.write(event(known.message, EventPlace(place.stream, known.id).wire_id))

    async def finish(self, stream: str) -> None:
        """Note that nothing more is said on a stream, where others need to know."""

    async def forget(self, stream: str | None = None) -> None:
        """Drop the events of a stream, or all."""
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                await self._store.forget(self._session, stream)
        except Exception:
            _log.exception("the event store does not forget the events of a session")

    async def after(self, place: EventPlace) -> Sequence[StoredEvent] | None:
        """Give what followed an event on its stream, None if nothing is known of it.

        Raises:
            HttpRefusal: 503 if the store fails.
        """
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                return await self._store.after(self._session, place.stream, place.event)
        except Exception:
            _log.exception("the event store does not answer: a stream cannot be resumed")
            raise HttpRefusal(503, "Service unavailable: the stream cannot be resumed now, try again later") from None


def unknown_event() -> HttpRefusal:
    """Refuse to go on after an event that is not kept."""
    return HttpRefusal(400, "Bad request: no such event is kept; send GET without Last-Event-ID for a new stream")


class SharedArchive(Archive):
    """Tells whenever something was kept, and notes the end of streams, so that another process can follow them."""

    def __init__(self, store: IEventStore, session: str, on_kept: Callable[[str, bytes], object]) -> None:
        super().__init__(store, session)
        self._on_kept: Callable[[str, bytes], object] | None = on_kept

    async def keep(self, stream: str, message: bytes) -> str | None:
        """Keep a message, and tell of it."""
        event_id = await super().keep(stream, message)
        if self._on_kept is not None:
            self._on_kept(stream, message)
        return event_id

    def fall_silent(self) -> None:
        """Tell of nothing any more."""
        self._on_kept = None

    async def finish(self, stream: str) -> None:
        """Note that nothing more is said on a stream."""
        await self.keep(stream, STREAM_END)
