"""An event stream: messages in, server-sent events out, with comments while nothing happens."""

import asyncio
from typing import Final

from axolotl_server.http.asgi import Send
from axolotl_server.http.reply import EVENT_STREAM_HEADERS, Headers, event

__all__ = ["EventStream"]

_MAX_WAITING: Final = 1000
_COMMENT: Final = b": keep-alive\n\n"


class EventStream:
    """Writes messages in a task of its own; a reader that falls behind loses the oldest waiting ones."""

    def __init__(self, send: Send, headers: Headers, keep_alive_seconds: float) -> None:
        self._send = send
        self._headers = EVENT_STREAM_HEADERS + headers
        self._keep_alive_seconds = keep_alive_seconds
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._task = asyncio.get_running_loop().create_task(self._write())

    def put(self, message: bytes | None) -> None:
        """Send a message; None ends the stream."""
        if self._waiting.qsize() >= _MAX_WAITING and message is not None:
            self._waiting.get_nowait()
        self._waiting.put_nowait(message)

    async def finished(self) -> None:
        """Wait until the stream has ended."""
        await self._task

    async def _write(self) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})
        while (message := await self._next()) is not None:
            await self._send({"type": "http.response.body", "body": message, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    async def _next(self) -> bytes | None:
        try:
            async with asyncio.timeout(self._keep_alive_seconds):
                message = await self._waiting.get()
        except TimeoutError:
            return _COMMENT
        return None if message is None else event(message)
