"""The console of a server: what it sees, and the pages that look."""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.wire import encode
from axolotl_server.asgi.event_stream import EventStream
from axolotl_server.asgi.http import HttpRefusal
from axolotl_server.console.journal import CallObserver, CallRecord, Journal
from axolotl_server.settings.server import ServerSettings
from axolotl_server.urls import is_loopback

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


CONSOLE_PATH: Final = "/console"
_MOST_PAGES: Final = 16
_MOST_RUNNING_SHOWN: Final = 200


class Console:
    """Sees every request of a server and tells the pages that are open."""

    def __init__(self, recent_calls: int, *, show_arguments: bool) -> None:
        self.journal = Journal(recent_calls)
        self.observer = CallObserver(self.journal, show_arguments=show_arguments)
        self.shows_arguments = show_arguments
        self.generation: Final = secrets.token_hex(4)
        """Tells a page that comes back whether it meets the same process."""
        self._problem: str | None = None
        self._feeds: set[Feed] = set()

    @property
    def problem(self) -> str | None:
        """Why the code that was written last is not the code that serves; None where it is."""
        return self._problem

    def tell_problem(self, problem: str | None) -> None:
        """Say that newer code could not be started, or that it is all right again."""
        self._problem = problem
        for feed in tuple(self._feeds):
            feed.say("problem", problem=problem)

    @contextmanager
    def telling(self, feed: Feed) -> Iterator[None]:
        """Tell a page of everything while the block runs, beginning with what went before.

        Raises:
            HttpRefusal: 503 if too many are open.
        """
        if len(self._feeds) >= _MOST_PAGES:
            raise HttpRefusal(503, f"Service unavailable: {_MOST_PAGES} pages of the console are open; close one")
        self._feeds.add(feed)
        stop_listening = self._greet(feed)
        try:
            yield
        finally:
            stop_listening()
            self._feeds.discard(feed)
            feed.close()

    def _greet(self, feed: Feed) -> Callable[[], None]:
        running = [record for record, _ in zip(self.journal.running(), range(_MOST_RUNNING_SHOWN), strict=False)]
        calls = [*self.journal.recent, *running]
        feed.say("hello", generation=self.generation, calls=calls, problem=self._problem)
        return self.journal.listen(feed.hear)


def make_console(settings: ServerSettings) -> Console:
    """Make the console of a server.

    Raises:
        ConfigurationError: if others than this machine could reach it, or the endpoint has its path.
    """
    http = settings.http
    if not is_loopback(http.host):
        raise ConfigurationError(
            f"Setting console.enabled is for this machine alone, but http.host is {http.host!r}: "
            "leave the console off, or listen at 127.0.0.1"
        )
    if any(f"{path}/".startswith(f"{CONSOLE_PATH}/") for path in (http.path, http.sse_path) if path is not None):
        raise ConfigurationError(f"The console is at {CONSOLE_PATH}: let http.path and http.sse_path lead elsewhere")
    return Console(settings.console.recent_calls, show_arguments=settings.console.show_arguments)
