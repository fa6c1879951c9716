"""Server-sent events: framing, and a stream that never blocks its writers."""

import asyncio
from math import inf
from typing import Final, Protocol

from axolotl_server.http.asgi import EVENT_STREAM_HEADERS, Headers, Send
from axolotl_server.protocol.flow_control import Backlog, is_droppable

KEEP_ALIVE: Final = b": keep-alive\n"
"""A comment, which clients ignore and which keeps proxies from closing the connection.

A blank line would end an event: httpx-sse then reports an empty one if the stream has event IDs.
"""
_STEPS: Final = 8
"""How often the timer looks at each stream during one interval."""


def event(message: bytes, event_id: str | None = None) -> bytes:
    """Frame a message."""
    if event_id is None:
        return b"event: message\ndata: %b\n\n" % message
    return b"id: %b\nevent: message\ndata: %b\n\n" % (event_id.encode(), message)


def priming(event_id: str) -> bytes:
    """Frame an id without a message, so that the client can resume the stream before the first message."""
    return b"id: %b\ndata:\n\n" % event_id.encode()


def retry(seconds: float) -> bytes:
    """Frame the time that a client waits before it reconnects."""
    return b"retry: %d\n\n" % round(seconds * 1000)


def endpoint(uri: str) -> bytes:
    """Frame the address for posts, for clients of the deprecated transport."""
    return b"event: endpoint\ndata: %b\n\n" % uri.encode()


class IKeptAlive(Protocol):
    """Something that must not be silent for long."""

    silent_steps: int
    """The number of steps since its last sign of life; whoever writes to the client sets it to 0."""

    def keep_alive(self) -> None:
        """Give a sign of life."""


class KeepAlive:
    """The one timer of all event streams, which asks those that were silent for an interval for a sign of life.

    It also ends streams whose clients do not read, if too many bytes wait for such clients. A timer per stream would
    cost more than everything else that an idle stream needs.
    """

    def __init__(self, seconds: float, max_unread_bytes: float = inf) -> None:
        self.writing: dict[EventStream, int] = {}
        """The streams with events that wait, with the number of events that each had sent at the last step."""
        self._max_unread_bytes = max_unread_bytes
        self._step_seconds = seconds / _STEPS
        self._members: dict[IKeptAlive, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, member: IKeptAlive) -> None:
        """Begin to count the silence of a member."""
        self._members[member] = None
        if self._timer is None:
            self._step_later()

    def remove(self, member: IKeptAlive) -> None:
        """Forget a member, if it is one."""
        self._members.pop(member, None)

    def _step_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._step_seconds, self._step)

    def _step(self) -> None:
        for member in tuple(self._members):
            member.silent_steps += 1
            if member.silent_steps >= _STEPS and member in self._members:
                member.silent_steps = 0
                member.keep_alive()
        if self.writing:
            self._bound()
        self._timer = None
        if self._members:
            self._step_later()

    def _bound(self) -> None:
        """End the streams that have sent nothing for longest, until what waits in the others is small enough."""
        stalled = [stream for stream, sent in self.writing.items() if stream.sent == sent]
        self.writing = {stream: stream.sent for stream in self.writing}
        total = sum(stream.waiting_bytes for stream in stalled)
        for stream in stalled:
            if total <= self._max_unread_bytes:
                return
            total -= stream.waiting_bytes
            stream.abandon()


class EventStream:
    """Writes an event stream. A client that reads too slowly loses the oldest notifications.

    Events are written by a task that exists only while there are any, so that an idle stream has none.
    """

    __slots__ = ("_done", "_ending", "_headers", "_keep_alive", "_send", "_task", "_waiting", "sent", "silent_steps")

    def __init__(self, send: Send, headers: Headers, keep_alive: KeepAlive) -> None:
        self._send = send
        self._headers: Headers | None = EVENT_STREAM_HEADERS + headers
        """The headers; None when they are sent."""
        self._keep_alive = keep_alive
        self._waiting: Backlog[bytes] = Backlog()
        self._ending = False
        self._done: asyncio.Future[None] | None = None
        """Done when the stream has ended; None until it is started."""
        self._task: asyncio.Task[None] | None = None
        self.sent = 0
        """The number of events that were sent."""
        self.silent_steps = 0

    @property
    def open(self) -> bool:
        """Whether messages are still accepted."""
        return not self._ending

    @property
    def waiting(self) -> int:
        """The number of events that wait to be sent."""
        return len(self._waiting)

    @property
    def waiting_bytes(self) -> int:
        """The size of the events that wait to be sent."""
        return sum(map(len, self._waiting))

    def put(self, message: bytes, event_id: str | None = None) -> None:
        """Send a message."""
        self._add(event(message, event_id), droppable=is_droppable(message))

    def write(self, frame: bytes) -> None:
        """Send a framed event, which is never dropped."""
        self._add(frame, droppable=False)

    def keep_alive(self) -> None:
        """Send a comment, unless the client does not read the events that wait."""
        if self._task is None:
            self.write(KEEP_ALIVE)

    def end(self) -> None:
        """End the stream after everything that waits is sent."""
        self._ending = True
        self._work()

    def abandon(self) -> None:
        """End the stream and drop everything that waits, because the client has left."""
        self._waiting.clear()
        self.end()

    def start(self) -> None:
        """Write from now on."""
        self._done = asyncio.get_running_loop().create_future()
        self._keep_alive.add(self)
        self._work()

    async def finished(self) -> None:
        """Wait until the stream has ended and everything is written."""
        assert self._done is not None
        try:
            await self._done
        finally:
            self._close()
            if self._task is not None:
                self._task.cancel()

    async def run(self) -> None:
        """Write until the stream ends."""
        self.start()
        await self.finished()

    def _add(self, frame: bytes, *, droppable: bool) -> None:
        if not self._ending:
            self._waiting.put(frame, droppable_bytes=len(frame) if droppable else None)
            self._work()

    def _work(self) -> None:
        self.silent_steps = 0
        if self._task is None and self._done is not None and not self._done.done():
            self._task = asyncio.get_running_loop().create_task(self._write())
            self._keep_alive.writing[self] = -1

    async def _write(self) -> None:
        try:
            if self._headers is not None:
                headers, self._headers = self._headers, None
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            while self._waiting:
                await self._send({"type": "http.response.body", "body": self._waiting.take(), "more_body": True})
                self.sent += 1
            if self._ending:
                await self._send({"type": "http.response.body", "body": b""})
                self._close()
        except OSError:  # some servers report a disconnected client this way
            self._close()
        except Exception as error:
            self._close(error)
        finally:
            self._task = None
            self._keep_alive.writing.pop(self, None)

    def _close(self, error: Exception | None = None) -> None:
        """Accept and write nothing more."""
        self._keep_alive.remove(self)
        self._waiting.clear()
        self._ending = True
        if self._done is not None and not self._done.done():
            if error is None:
                self._done.set_result(None)
            else:
                self._done.set_exception(error)
