"""Sessions of a server: its own, or those that it shares with other processes."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.identity import Principal
from axolotl_core.sessions import IEventStore
from axolotl_server.asgi.http import HttpRefusal
from axolotl_server.handler import DefaultHandler
from axolotl_server.sessions.session import Session
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.transports import SessionSettings
from axolotl_server.stores.memory_events import MemoryEventStore

if TYPE_CHECKING:
    from axolotl_server.stores.redis_client import RedisClient


class Sessions:
    """Begins, finds and ends sessions, and counts what else stays connected."""

    shared: ClassVar = False
    """Whether other processes serve them too: then each is to be restored before and settled after a message."""

    def __init__(self, handler: DefaultHandler, settings: SessionSettings, store: IEventStore | None) -> None:
        self._handler = handler
        self._settings = settings
        self._store = store
        self._by_id: dict[bytes, Session] = {}
        self._guests: set[Callable[[], object]] = set()
        self._forgetting: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._closing = False
        self.stream_replies = settings.stream_replies and store is not None
        self.plain_replies = not (self.stream_replies or self.shared)
        """Whether a reply may leave without being looked at again."""

    def __len__(self) -> int:
        return len(self._by_id) + len(self._guests)

    def all(self) -> tuple[Session, ...]:
        """Give all sessions of this process."""
        return tuple(self._by_id.values())

    def begin(self, principal: Principal) -> Session:
        """Begin a session.

        Raises:
            HttpRefusal: 503 if there are too many, or if the server stops.
        """
        self.check_open()
        self._find_place()
        session = Session(principal, self._store, self._settings.retry_seconds)
        self._by_id[session.id] = session
        self._handler.connect(session)
        self._sweep_later()
        return session

    def find(self, session_id: bytes | None, principal: Principal) -> Session:
        """Find the session a request names.

        Raises:
            HttpRefusal: 400 if it names none, 404 if there is no such session of this principal.
        """
        if session_id is None:
            raise HttpRefusal(
                400, "Bad request: send the Mcp-Session-Id that initialize gave, or params._meta with each request"
            )
        session = self._by_id.get(session_id)
        if session is None or session.principal.identity != principal.identity:
            raise HttpRefusal(404, "Session not found: it has ended, initialize again")
        session.last_used = time.monotonic()
        return session

    async def restore(self, session_id: bytes, principal: Principal) -> None:
        """Learn what became of a session elsewhere.

        Raises:
            HttpRefusal: 503 if that cannot be found out.
        """

    async def publish_changes(self, session: Session) -> None:
        """Let others know what a message did to a session, before it is answered.

        Raises:
            HttpRefusal: 503 if that cannot be done.
        """

    async def delete(self, session: Session) -> None:
        """End a session as its client wishes.

        Raises:
            HttpRefusal: 503 if that cannot be done.
        """
        self.end(session)

    async def close(self) -> None:
        """Let go of what is shared with others."""

    def end(self, session: Session) -> None:
        """End a session, what runs for it and what is kept of it."""
        self._by_id.pop(session.id, None)
        self._handler.disconnect(session)
        session.close()
        if session.has_spoken and self._store is not None:
            forgetting = asyncio.get_running_loop().create_task(session.forget())
            self._forgetting.add(forgetting)
            forgetting.add_done_callback(self._forgetting.discard)

    @contextmanager
    def other_connection(self, leave: Callable[[], object]) -> Iterator[None]:
        """Let a connection in that is no session but counts as one; `leave` is called when the server stops.

        Raises:
            HttpRefusal: 503 if there are too many, or if the server stops.
        """
        self.check_open()
        self._find_place()
        self._guests.add(leave)
        try:
            yield
        finally:
            self._guests.discard(leave)

    def check_open(self) -> None:
        """Refuse a session, or a stream that nothing but the end of the server would end.

        Raises:
            HttpRefusal: 503 if the server stops.
        """
        if self._closing:
            message = "Service unavailable: the server is shutting down; try again"
            refusal = HttpRefusal(503, message, headers=[(b"retry-after", b"1")])
            refusal.data = {"retryAfterMs": 1000}
            raise refusal

    def refuse_streams(self) -> None:
        """Open no stream that waits for news any more, and no session."""
        self._closing = True
        self._handler.subscriptions.refuse()

    def end_listeners(self) -> None:
        """Send away whoever waits for news; they may come back."""
        self._handler.subscriptions.end_listeners()
        for session in self._by_id.values():
            session.stop_listening()

    def end_streams(self) -> None:
        """Close every stream that waits for news, and open none any more; streams of calls end with their calls."""
        self.refuse_streams()
        self._handler.subscriptions.end()
        for session in self._by_id.values():
            session.stop_listening()
        for leave in tuple(self._guests):
            leave()

    def _find_place(self) -> None:
        if len(self) >= self._settings.maximum:
            self._drop_idle()
        if len(self) >= self._settings.maximum:
            raise HttpRefusal(503, "Too many sessions: end one with DELETE, or try again later")

    def _sweep_later(self) -> None:
        if self._sweeping is None and self._by_id:
            loop = asyncio.get_running_loop()
            self._sweeping = loop.call_later(self._settings.idle_seconds / 4, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        self._drop_idle()
        self._sweep_later()

    def _drop_idle(self) -> None:
        now = time.monotonic()
        for session in tuple(self._by_id.values()):
            if session.in_use:
                session.last_used = now
            elif session.last_used < now - self._settings.idle_seconds:
                self.end(session)


def choose_sessions(
    handler: DefaultHandler,
    settings: ServerSettings,
    given: IEventStore | None = None,
    redis: "RedisClient | None" = None,
) -> Sessions:
    """Make the sessions that the settings ask for; shared ones need a running event loop."""
    if redis is not None:
        return _redis_sessions(handler, settings.sessions, redis, given)
    if settings.sessions.directory is not None:
        return _sqlite_sessions(handler, settings.sessions, settings.sessions.directory, given)
    return Sessions(handler, settings.sessions, _events(settings.sessions, given))


def _events(settings: SessionSettings, given: IEventStore | None) -> IEventStore | None:
    """Choose where events are kept, if they are."""
    if not settings.resumable:
        return None
    return MemoryEventStore(settings.max_events, settings.max_event_bytes) if given is None else given


def _redis_sessions(
    handler: DefaultHandler, settings: SessionSettings, redis: "RedisClient", given: IEventStore | None
) -> Sessions:
    from axolotl_server.sessions.shared_sessions import SharedSessions
    from axolotl_server.stores.redis_events import RedisEventStore
    from axolotl_server.stores.redis_sessions import RedisSessionStore

    store = RedisSessionStore(
        redis,
        maximum=settings.maximum,
        idle_seconds=settings.idle_seconds,
        timeout_seconds=settings.store_timeout_seconds,
    )
    events = given or RedisEventStore(
        redis,
        max_events=settings.max_events,
        max_bytes=settings.max_event_bytes,
        idle_seconds=settings.idle_seconds,
        timeout_seconds=settings.store_timeout_seconds,
    )
    return SharedSessions(handler, settings, events if settings.resumable else None, store)


def _sqlite_sessions(
    handler: DefaultHandler, settings: SessionSettings, directory: Path, given: IEventStore | None
) -> Sessions:
    from axolotl_server.sessions.shared_sessions import SharedSessions
    from axolotl_server.stores.sqlite_sessions import SqliteEventStore, SqliteSessionStore

    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # sessions are secrets
    except OSError as error:
        raise ConfigurationError(f"Setting sessions.directory: {directory} cannot be used: {error.strerror}") from error
    store = SqliteSessionStore(directory, maximum=settings.maximum, idle_seconds=settings.idle_seconds)
    if not settings.resumable or given is not None:
        return SharedSessions(handler, settings, given if settings.resumable else None, store)
    events = SqliteEventStore(
        directory / "events.sqlite", max_events=settings.max_events, max_bytes=settings.max_event_bytes
    )
    return SharedSessions(handler, settings, events, store, events.close)
