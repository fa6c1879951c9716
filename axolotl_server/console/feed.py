"""What one open page hears: bundles of news, not faster than it reads them."""

import asyncio
from typing import Any, Final

from axolotl_core.protocol.wire import encode
from axolotl_server.console.records import CallRecord
from axolotl_server.http.stream import EventStream

__all__ = ["Feed"]

_SECONDS_BETWEEN_BUNDLES: Final = 0.1
_MOST_PENDING: Final = 1000


class Feed:
    """Gathers news for a page and sends them together; a page that falls behind is told how many it missed."""

    def __init__(self, stream: EventStream, loop: asyncio.AbstractEventLoop) -> None:
        self._stream = stream
        self._loop = loop
        self._pending: dict[int, CallRecord] = {}
        self._missed = 0
        self._timer: asyncio.TimerHandle | None = None

    def say(self, kind: str, **content: Any) -> None:
        """Send a message of its own."""
        self._stream.put(encode({"type": kind, **content}))

    def hear(self, record: CallRecord) -> None:
        """Take a record along with the next bundle; the end of a request replaces its beginning."""
        self._pending.pop(record.number, None)
        self._pending[record.number] = record
        if len(self._pending) > _MOST_PENDING:
            del self._pending[next(iter(self._pending))]
            self._missed += 1
        if self._timer is None:
            self._timer = self._loop.call_later(_SECONDS_BETWEEN_BUNDLES, self._send)

    def close(self) -> None:
        """Send nothing more."""
        if self._timer is not None:
            self._timer.cancel()

    def _send(self) -> None:
        if self._stream.waiting:
            self._timer = self._loop.call_later(_SECONDS_BETWEEN_BUNDLES, self._send)
            return
        self._timer = None
        calls, self._pending = tuple(self._pending.values()), {}
        missed, self._missed = self._missed, 0
        self.say("calls", calls=calls, missed=missed)
