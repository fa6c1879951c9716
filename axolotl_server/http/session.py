"""The session of an HTTP client that uses the handshake."""

import secrets
import time

from axolotl_core.event_store import IEventStore
from axolotl_core.protocol.identity import Principal
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.http.resumption import Archive, place_of
from axolotl_server.http.session_stream import IAttached, SessionStream
from axolotl_server.http.stream import EventStream
from axolotl_server.peer import Connection

__all__ = ["Session"]


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
