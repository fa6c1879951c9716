"""Server-sent events: framing, and a stream that never blocks its writers."""

import asyncio
from collections.abc import Callable
from typing import Final

from axolotl_server.asgi.http import EVENT_STREAM_HEADERS, Headers, Receive, Send
from axolotl_server.messages.flow_control import Backlog, is_droppable

KEEP_ALIVE: Final = b": keep-alive\n"
"""A comment, which clients ignore and which keeps proxies from closing the connection.

A blank line would end an event: httpx-sse then reports an empty one if the stream has event IDs.
"""


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


class EventStream:
    """Writes an event stream. A client that reads too slowly loses the oldest notifications."""

    def __init__(self, send: Send, headers: Headers, keep_alive_seconds: float) -> None:
        self._send = send
        self._headers = EVENT_STREAM_HEADERS + headers
        self._keep_alive_seconds = keep_alive_seconds
        self._waiting: Backlog[bytes] = Backlog()
        self._wake = asyncio.Event()
        self._ending = False
        self._task: asyncio.Task[None] | None = None

    @property
    def open(self) -> bool:
        """Whether messages are still accepted."""
        return not self._ending

    @property
    def waiting(self) -> int:
        """The number of events that wait to be sent."""
        return len(self._waiting)

    def put(self, message: bytes, event_id: str | None = None) -> None:
        """Send a message."""
        self._add(event(message, event_id), droppable=is_droppable(message))

    def write(self, frame: bytes) -> None:
        """Send a framed event, which is never dropped."""
        self._add(frame, droppable=False)

    def end(self) -> None:
        """End the stream after everything that waits is sent."""
        self._ending = True
        self._wake.set()

    def abandon(self) -> None:
        """End the stream and drop everything that waits, because the client has left."""
        self._waiting.clear()
        self.end()

    def start(self) -> None:
        """Write in a new task."""
        self._task = asyncio.get_running_loop().create_task(self._write())

    async def finished(self) -> None:
        """Wait until everything is written."""
        if self._task is not None:
            await self._task

    async def run(self) -> None:
        """Write in the task of the caller until the stream ends."""
        await self._write()

    def _add(self, frame: bytes, *, droppable: bool) -> None:
        if not self._ending:
            self._waiting.put(frame, droppable=droppable)
            self._wake.set()

    async def _write(self) -> None:
        try:
            await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})
            while (frame := await self._next()) is not None:
                await self._send({"type": "http.response.body", "body": frame, "more_body": True})
            await self._send({"type": "http.response.body", "body": b""})
        except OSError:  # some servers report a disconnected client this way
            return
        finally:
            self.abandon()

    async def _next(self) -> bytes | None:
        while not self._waiting:
            if self._ending:
                return None
            self._wake.clear()
            try:
                async with asyncio.timeout(self._keep_alive_seconds):
                    await self._wake.wait()
            except TimeoutError:
                return KEEP_ALIVE
        return self._waiting.take()


async def until_client_leaves(receive: Receive, leave: Callable[[], object]) -> None:
    """Wait until the client disconnects, then call `leave`."""
    while (await receive())["type"] != "http.disconnect":
        pass
    leave()
