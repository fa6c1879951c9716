"""One connection that takes server-sent events: messages in, bytes out, comments while nothing happens."""

import asyncio

from axolotl_server.backlog import Backlog, is_losable
from axolotl_server.http.asgi import Send
from axolotl_server.http.event_source import KEEP_ALIVE, event
from axolotl_server.http.reply import EVENT_STREAM_HEADERS, Headers

__all__ = ["EventStream"]


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
        self._add(event(message, event_id), losable=is_losable(message))

    def write(self, frame: bytes) -> None:
        """Send an event that is framed already, and will not be dropped."""
        self._add(frame, losable=False)

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

    def _add(self, frame: bytes, *, losable: bool) -> None:
        if not self._ending:
            self._waiting.put(frame, losable=losable)
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
