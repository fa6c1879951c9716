"""Going on with a stream on which another process speaks."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from axolotl_core.sessions import StoredEvent
from axolotl_server.asgi.event_stream import EventStream, priming, retry
from axolotl_server.asgi.http import HttpRefusal
from axolotl_server.sessions.event_archive import STREAM_END, Archive, EventPlace, place_of, unknown_event

_PATIENCE_SECONDS: Final = 1.0
_MOST_SILENCES: Final = 3
"""How often nobody may answer for a stream until its process is taken for dead."""


class StreamFollower:
    """Sends what is kept of a stream, in its order, and then what is kept from then on.

    It looks whenever it is woken. Where it is not, it asks whether somebody still speaks on the stream: the answer
    wakes it, and without one the connection ends.
    """

    def __init__(
        self,
        archive: Archive,
        place: EventPlace,
        outlet: EventStream,
        ask: Callable[[], Awaitable[bool]] | None,
        on_end: Callable[["StreamFollower"], object],
    ) -> None:
        """Go on after a place; `ask` is None where this process itself speaks on the stream."""
        self.stream = place.stream
        self._archive = archive
        self._place = place
        self._outlet = outlet
        self._ask = ask
        self._on_end = on_end
        self._stirred = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether somebody listens."""
        return self._outlet.open

    async def begin(self, *, primed: bool) -> None:
        """Send what is kept, and go on unless the stream has ended.

        Raises:
            HttpRefusal: 400 if nothing is known of the event and nobody speaks on its stream, 503 if the store fails.
        """
        is_heard = self._ask is None or await self._ask()
        events = await self._archive.after(self._place)
        if events is None:
            await self._find_place(is_heard)
        if primed:
            self._outlet.write(priming(self._place.wire_id))
        if self._send(events or ()) and is_heard:
            self._task = asyncio.get_running_loop().create_task(self._follow())
        else:
            self._outlet.end()

    def wake(self) -> None:
        """Look for more."""
        self._stirred.set()

    def leave(self) -> None:
        """End the connection: its client has opened another one."""
        self._outlet.abandon()

    def send_away(self, seconds: float | None) -> None:
        """End the connection, and have its client come back for the rest."""
        if seconds is not None:
            self._outlet.write(retry(seconds))
        self._outlet.end()

    def detach(self, outlet: EventStream) -> None:
        """Learn that the connection has gone."""
        if self._task is not None:
            self._task.cancel()
        self._on_end(self)

    async def _find_place(self, is_heard: bool) -> None:
        """Begin where the stream is now, because what the client had is forgotten."""
        if not is_heard or (self._ask is not None and not await self._woken()):
            raise unknown_event()
        event_id = await self._archive.keep(self.stream, b"")
        if event_id is None:
            raise HttpRefusal(503, "Service unavailable: the stream cannot be resumed now, try again later")
        self._place = place_of(event_id.encode())

    async def _woken(self) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._stirred.wait()
        except TimeoutError:
            return False
        self._stirred.clear()
        return True

    async def _follow(self) -> None:
        silences = 0
        try:
            while self._outlet.open:
                if self._ask is None:
                    await self._stirred.wait()
                    self._stirred.clear()
                elif await self._woken():
                    silences = 0
                else:
                    silences += 1
                    if silences > _MOST_SILENCES or not await self._ask():
                        break
                if not self._send(await self._archive.after(self._place) or ()):
                    break
        except HttpRefusal:  # the store is away: the client may come back when it is not
            pass
        finally:
            self._outlet.end()

    def _send(self, events: Sequence[StoredEvent]) -> bool:
        """Send events; answers False if the stream ends with them."""
        for known in events:
            if known.message == STREAM_END:
                return False
            self._place = EventPlace(self.stream, known.id)
            if known.message:
                self._outlet.put(known.message, self._place.wire_id)
        return True
