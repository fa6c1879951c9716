"""A follower of a stream that another process writes to."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from axolotl_core.sessions import StoredEvent
from axolotl_server.http.asgi import HttpRefusal
from axolotl_server.http.event_stream import EventStream, priming, retry
from axolotl_server.sessions.event_archive import STREAM_END, Archive, EventPlace, parse_event_id, unknown_event

_ANSWER_SECONDS: Final = 1.0
_MAX_MISSED_ANSWERS: Final = 3
"""After how many unanswered questions the process of a stream is considered dead."""


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
