"""GET: a stream for what the server says unasked, or the rest of one that broke off."""

import asyncio
from collections.abc import Callable
from typing import Final

from axolotl_server.asgi.http import EVENT_STREAM_HEADERS, Headers, Receive, Send
from axolotl_server.messages.flow_control import Backlog, is_droppable

KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, which clients ignore and proxies see."""


def event(message: bytes, event_id: str | None = None) -> bytes:
    """Frame a message."""
    if event_id is None:
        return b"event: message\ndata: %b\n\n" % message
    return b"id: %b\nevent: message\ndata: %b\n\n" % (event_id.encode(), message)


def priming(event_id: str) -> bytes:
    """Give a client an id to come back with before there is anything to say."""
    return b"id: %b\ndata:\n\n" % event_id.encode()


def retry(seconds: float) -> bytes:
    """Tell a client how long to wait before it comes back."""
    return b"retry: %d\n\n" % round(seconds * 1000)


def endpoint(uri: str) -> bytes:
    """Tell a client of the transport with two endpoints where to post."""
    return b"event: endpoint\ndata: %b\n\n" % uri.encode()


class EventStream:
    """Writes an event stream; a reader that falls behind loses the oldest notifications that wait for it."""

    def __init__(self, send: Send, headers: Headers, keep_alive_seconds: float) -> None:
        self._send = send
        self._headers = EVENT_STREAM_HEADERS + headers
        self._keep_alive_seconds = keep_alive_seconds
        self._waiting: Backlog[bytes] = Backlog()
        self._stirred = asyncio.Event()
        self._ending = False
        self._task: asyncio.Task[None] | None = None

    @property
    def open(self) -> bool:
        """Whether messages are still taken."""
        return not self._ending

    @property
    def waiting(self) -> int:
        """How many events the reader has yet to take."""
        return len(self._waiting)

    def put(self, message: bytes, event_id: str | None = None) -> None:
        """Send a message."""
        self._add(event(message, event_id), droppable=is_droppable(message))

    def write(self, frame: bytes) -> None:
        """Send an event that is framed already, and will not be dropped."""
        self._add(frame, droppable=False)

    def end(self) -> None:
        """End the stream when everything is out."""
        self._ending = True
        self._stirred.set()

    def abandon(self) -> None:
        """End the stream and drop what waits: nobody reads here any more."""
        self._waiting.clear()
        self.end()

    def start(self) -> None:
        """Write in a task of its own."""
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
            self._stirred.set()

    async def _write(self) -> None:
        try:
            await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})
            while (frame := await self._next()) is not None:
                await self._send({"type": "http.response.body", "body": frame, "more_body": True})
            await self._send({"type": "http.response.body", "body": b""})
        except OSError:  # how some servers say that the client has gone
            return
        finally:
            self.abandon()

    async def _next(self) -> bytes | None:
        while not self._waiting:
            if self._ending:
                return None
            self._stirred.clear()
            try:
                async with asyncio.timeout(self._keep_alive_seconds):
                    await self._stirred.wait()
            except TimeoutError:
                return KEEP_ALIVE
        return self._waiting.take()


async def until_client_leaves(receive: Receive, leave: Callable[[], object]) -> None:
    """Wait for the client's disconnection and tell of it."""
    while (await receive())["type"] != "http.disconnect":
        pass
    leave()
