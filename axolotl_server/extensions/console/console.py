"""The console of a server, and the feeds of its open pages."""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote, urlsplit

from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import encode
from axolotl_server.extension import Extension
from axolotl_server.extensions.console.journal import CallRecord, Journal
from axolotl_server.http.asgi import HttpRefusal
from axolotl_server.http.event_stream import EventStream
from axolotl_server.protocol.connection import IObserver
from axolotl_server.urls import is_loopback

if TYPE_CHECKING:
    from axolotl_server.hosting.assembly import ServerAssembly
    from axolotl_server.http.asgi import IAuthenticator, Route
    from axolotl_server.sessions.sessions import Sessions

Activity: TypeAlias = Callable[[], Mapping[str, Any]]
"""Describes what runs now."""

RECENT_CALLS: Final = 500
"""How many recent calls the console shows when it is opened."""
_BATCH_SECONDS: Final = 0.1
_CHECK_SECONDS: Final = 2.0
_MAX_PENDING: Final = 1000


class Feed:
    """Sends records to a page in batches; a slow page is told how many it missed."""

    def __init__(self, stream: EventStream, loop: asyncio.AbstractEventLoop, activity: Activity) -> None:
        self._stream = stream
        self._loop = loop
        self._activity = activity
        self._last_activity: Mapping[str, Any] = {}
        self._checking: asyncio.TimerHandle | None = None
        self._pending: dict[int, CallRecord] = {}
        self._missed = 0
        self._timer: asyncio.TimerHandle | None = None

    def send(self, kind: str, **content: Any) -> None:
        """Send a message at once."""
        self._stream.put(encode({"type": kind, **content}))

    def add(self, record: CallRecord) -> None:
        """Add a record to the next batch; the end of a request replaces its beginning."""
        self._pending.pop(record.number, None)
        self._pending[record.number] = record
        if len(self._pending) > _MAX_PENDING:
            del self._pending[next(iter(self._pending))]
            self._missed += 1
        if self._timer is None:
            self._timer = self._loop.call_later(_BATCH_SECONDS, self._send_batch)

    def close(self) -> None:
        """Stop sending."""
        for timer in (self._timer, self._checking):
            if timer is not None:
                timer.cancel()

    def _send_batch(self) -> None:
        if self._stream.waiting:
            self._timer = self._loop.call_later(_BATCH_SECONDS, self._send_batch)
            return
        self._timer = None
        calls, self._pending = tuple(self._pending.values()), {}
        missed, self._missed = self._missed, 0
        self.send("calls", calls=calls, missed=missed, activity=self.activity())

    def activity(self) -> Mapping[str, Any]:
        """Return what runs now, for a message that is sent at once."""
        self._last_activity = self._activity()
        return self._last_activity

    def check_later(self) -> None:
        """Send changes that no call causes from now on, such as a session that expires or abandoned code that ends."""
        self._checking = self._loop.call_later(_CHECK_SECONDS, self._check_activity)

    def _check_activity(self) -> None:
        self.check_later()
        before = self._last_activity
        if not self._stream.waiting and self.activity() != before:
            self.send("activity", activity=self._last_activity)


CONSOLE_PATH: Final = "/console"
_MAX_PAGES: Final = 16
_MAX_RUNNING_SHOWN: Final = 200


class Console(Extension):
    """Notices every request of a server and sends it to the open pages."""

    identifier = "axolotl/console"
    token: str
    """Sent by the page with every request for data; the link that the server prints contains it."""
    journal: Journal
    instance_id: str
    """Tells a page that reconnects whether it reaches the same process."""
    _server: "ServerAssembly"
    _problem: str | None = None
    _feeds: set[Feed]

    def attach(self, server: "ServerAssembly", section: Any) -> None:
        """Begin a journal; raises ConfigurationError if others could reach the page, or if its path is in use."""
        http, settings = server.settings.http, server.settings.console
        if not is_loopback(http.host):
            raise ConfigurationError(
                f"console.enabled is for this machine only, but http.host is {http.host!r}: "
                "disable the console, or listen on 127.0.0.1"
            )
        if any(f"{path}/".startswith(f"{CONSOLE_PATH}/") for path in (http.path, http.sse_path) if path is not None):
            raise ConfigurationError(
                f"The console uses the path {CONSOLE_PATH}: choose other paths for http.path and http.sse_path"
            )
        given = None if settings.token is None else settings.token.get_secret_value()
        self._server, self._feeds = server, set()
        self.token, self.instance_id = given or secrets.token_urlsafe(16), secrets.token_hex(4)
        self.journal = Journal(RECENT_CALLS, show_arguments=settings.show_arguments)

    def capabilities(self, revision: Revision) -> Mapping[str, Any]:
        return {}  # it is none of a client's business

    def observers(self) -> Iterable[IObserver]:
        return (self.journal,)

    def routes(self, gate: "IAuthenticator | None", sessions: "Callable[[], Sessions]") -> "Mapping[str, Route]":
        from axolotl_server.extensions.console.routes import ConsoleRoutes  # only HTTP servers have a page

        return ConsoleRoutes(self._server, self, gate, sessions).by_path()

    def link(self, url: str) -> str:
        """Return the link to the page of a server with this URL; browsers do not send the part after `#`."""
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc}{CONSOLE_PATH}#token={quote(self.token, safe='')}"

    def set_problem(self, problem: str | None) -> None:
        """Show on all pages that the newest code could not be started, or that the problem is solved."""
        self._problem = problem
        for feed in tuple(self._feeds):
            feed.send("problem", problem=problem)

    @contextmanager
    def subscribed(self, feed: Feed) -> Iterator[None]:
        """Send a page everything while the block runs, beginning with recent calls; raises HttpRefusal (503)."""
        if len(self._feeds) >= _MAX_PAGES:
            raise HttpRefusal(503, f"Service unavailable: {_MAX_PAGES} console pages are open; close one")
        self._feeds.add(feed)
        running = islice(self.journal.running(), _MAX_RUNNING_SHOWN)
        feed.send(
            "hello",
            instance_id=self.instance_id,
            calls=[*self.journal.recent, *running],
            problem=self._problem,
            activity=feed.activity(),
        )
        feed.check_later()
        stop_listening = self.journal.listen(feed.add)
        try:
            yield
        finally:
            stop_listening()
            self._feeds.discard(feed)
            feed.close()
