"""Sessions of a server: its own, or those that it shares with other processes."""

import asyncio
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.identity import Principal
from axolotl_core.sessions import IEventStore
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.asgi import HttpRefusal
from axolotl_server.protocol.connection import MayHear
from axolotl_server.protocol.fair_share import Share, is_used_up
from axolotl_server.sessions.event_archive import parse_event_id, unknown_event
from axolotl_server.sessions.session import Session
from axolotl_server.settings.secret_files import is_trusted
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.transports import SessionSettings
from axolotl_server.stores.memory_events import MemoryEventStore

if TYPE_CHECKING:
    from axolotl_server.stores.redis_client import RedisClient


MAX_EVENTS: Final = 1000
"""How many messages are kept per session. The oldest are dropped first."""
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
"""How many bytes of messages are kept per session."""
STORE_TIMEOUT_SECONDS: Final = 1.0
"""How long a request waits for the session store before it gets 503."""
_RECONNECT_SECONDS: Final = 1.0
"""How long a client should wait before it reconnects after the server has closed its stream."""
_RETRY_SECONDS: Final = 10


def too_many_sessions(limit_per_principal: int | None = None) -> HttpRefusal:
    """Refuse a session, because there are too many, or because one principal has as many as it may have."""
    whose = "" if limit_per_principal is None else f" of one caller, which may have {limit_per_principal}"
    message = f"Too many sessions{whose}: end one with DELETE, or try again later"
    headers = [(b"retry-after", b"%d" % _RETRY_SECONDS)]
    refusal = HttpRefusal(503 if limit_per_principal is None else 429, message, headers=headers)
    refusal.data = {"reason": "overloaded", "retryAfterMs": _RETRY_SECONDS * 1000}
    return refusal


class OtherConnection(msgspec.Struct, frozen=True, eq=False):
    """A long-lived connection that is not a session."""

    on_stop: Callable[[], object]
    """Called when the server shuts down."""
    share: Share | None


class Sessions:
    """Begins, finds and ends sessions, and counts other long-lived connections."""

    shared: ClassVar = False
    """Whether other processes serve them too; then a session is restored before each message and published after it."""

    def __init__(
        self, handler: DefaultHandler, settings: SessionSettings, store: IEventStore | None, maximum_per_caller: int
    ) -> None:
        self._handler = handler
        self._settings = settings
        self._store = store
        self._maximum_per_caller = maximum_per_caller
        self._by_id: dict[bytes, Session] = {}
        self._other_connections: set[OtherConnection] = set()
        self._forgetting: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._closing = False
        self.reconnect_seconds = _RECONNECT_SECONDS
        """How long a client should wait before it reconnects."""
        self.stream_replies = settings.resumable == "replies" and store is not None
        self.plain_replies = not (self.stream_replies or self.shared)
        """Whether a reply can be sent without further processing."""

    def __len__(self) -> int:
        return len(self._by_id) + len(self._other_connections)

    def all(self) -> tuple[Session, ...]:
        """Return all sessions of this process."""
        return tuple(self._by_id.values())

    def begin(self, principal: Principal, share: Share | None) -> Session:
        """Begin a session.

        Refuse with 503 if there are too many or the server is shutting down, with 429 if the principal has too many.
        """
        self.check_open()
        self._make_room(share)
        session = Session(principal, self._store, self.reconnect_seconds, share=share)
        self._by_id[session.id] = session
        self._handler.connect(session)
        self._sweep_later()
        return session

    def find(self, session_id: bytes | None, principal: Principal) -> Session:
        """Find the session that a request names; refuse with 400 if it names none, 404 if it is not the principal's."""
        if session_id is None:
            raise HttpRefusal(
                400, "Bad request: send the Mcp-Session-Id that initialize returned, or params._meta with each request"
            )
        session = self._by_id.get(session_id)
        if session is None or (session.principal is not principal and session.principal.identity != principal.identity):
            raise HttpRefusal(404, "Session not found: it has ended, initialize again")
        session.last_used = monotonic()
        return session

    def mark(self, principal: Principal, subject: FeatureSpec | None = None) -> str:
        """Return the part of the ID of a new stream that says who may resume it."""
        guard = self._handler.control.guard
        return "" if guard is None else guard.mark(principal, subject)

    def hearing(self, principal: Principal) -> MayHear | None:
        """Return what decides which messages about tasks a principal may hear; None if it may hear all."""
        guard = self._handler.control.guard
        return None if guard is None else partial(guard.may_hear, principal)

    async def check_resumption(self, last_event_id: bytes, principal: Principal) -> None:
        """Refuse with 400, as for an unknown event, to resume a stream that the principal may not read now."""
        guard = self._handler.control.guard
        if guard is not None and not await guard.may_resume(parse_event_id(last_event_id).mark, principal):
            raise unknown_event()

    async def restore(self, session_id: bytes, principal: Principal) -> None:
        """Update a session that other processes may have changed; refuse with 503 if the store fails."""

    async def publish_changes(self, session: Session) -> None:
        """Store what a message changed in a session, before the reply; refuse with 503 if the store fails."""

    async def delete(self, session: Session) -> None:
        """End a session for its client; refuse with 503 if the store fails."""
        self.end(session)

    async def ping(self) -> None:
        """Check that the store responds; a store in memory always does."""

    async def close(self) -> None:
        """Close the stores that are shared with other processes."""

    def end(self, session: Session) -> None:
        """End a session with its calls and its stored messages."""
        self._by_id.pop(session.id, None)
        self._handler.disconnect(session)
        session.close()
        if session.has_had_streams and self._store is not None:
            forgetting = asyncio.get_running_loop().create_task(session.forget())
            self._forgetting.add(forgetting)
            forgetting.add_done_callback(self._forgetting.discard)

    @contextmanager
    def other_connection(self, on_stop: Callable[[], object], share: Share | None = None) -> Iterator[None]:
        """Count a connection that is not a session like one; `on_stop` is called when the server shuts down.

        Refuse it like a session.
        """
        self.check_open()
        self._make_room(share)
        connection = OtherConnection(on_stop, share)
        self._other_connections.add(connection)
        try:
            yield
        finally:
            self._other_connections.discard(connection)

    def check_open(self) -> None:
        """Refuse new sessions and streams with 503 if the server is shutting down."""
        if self._closing:
            message = "Service unavailable: the server is shutting down; try again"
            refusal = HttpRefusal(503, message, headers=[(b"retry-after", b"1")])
            refusal.data = {"retryAfterMs": 1000}
            raise refusal

    def refuse_streams(self) -> None:
        """Accept no more streams for notifications, and no more sessions."""
        self._closing = True
        self._handler.subscriptions.refuse()

    def end_listeners(self) -> None:
        """Close the streams for notifications; clients may open them again."""
        self._handler.subscriptions.end()
        for session in self._by_id.values():
            session.stop_listening()

    def end_streams(self) -> None:
        """Close all streams for notifications and accept no more; streams of calls end with their calls."""
        self.refuse_streams()
        self.end_listeners()
        for connection in tuple(self._other_connections):
            connection.on_stop()

    def _make_room(self, share: Share | None) -> None:
        maximum, limit = self._settings.maximum, self._maximum_per_caller
        if len(self) >= maximum or self._is_used_up(share):
            self._drop_idle()
        if len(self) >= maximum:
            raise too_many_sessions()
        if self._is_used_up(share):
            raise too_many_sessions(limit)

    def _is_used_up(self, share: Share | None) -> bool:
        return is_used_up(share, self._maximum_per_caller, self._by_id.values(), self._other_connections)

    def _sweep_later(self) -> None:
        if self._sweeping is None and (self._by_id or self.shared):
            loop = asyncio.get_running_loop()
            self._sweeping = loop.call_later(self._settings.idle_seconds / 4, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        self._drop_idle()
        self._sweep_later()

    def _drop_idle(self) -> None:
        now = monotonic()
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
    """Make the sessions that the settings describe; shared ones need a running event loop."""
    chosen = settings.sessions
    per_caller, is_resumable = settings.limits.of_caller(chosen.maximum), chosen.resumable != "off"
    events, needs_events = given if is_resumable else None, is_resumable and given is None
    kept: Any = {"max_events": MAX_EVENTS, "max_bytes": MAX_EVENT_BYTES}
    if redis is None and chosen.directory is None:
        if needs_events:
            events = MemoryEventStore(**kept, max_total_bytes=chosen.max_total_event_bytes)
        return Sessions(handler, chosen, events, per_caller)

    from axolotl_server.sessions.shared_sessions import SharedSessions

    patience: Any = {"idle_seconds": chosen.idle_seconds, "timeout_seconds": STORE_TIMEOUT_SECONDS}
    limits: Any = {"maximum": chosen.maximum, "maximum_per_principal": per_caller, **patience}
    if redis is not None:
        from axolotl_server.stores.redis_events import RedisEventStore
        from axolotl_server.stores.redis_sessions import RedisSessionStore

        if needs_events:
            events = RedisEventStore(redis, **kept, **patience)
        return SharedSessions(handler, chosen, events, RedisSessionStore(redis, **limits), per_caller)

    from axolotl_server.stores.sqlite_events import SqliteEventStore
    from axolotl_server.stores.sqlite_sessions import SqliteSessionStore

    assert chosen.directory is not None
    _prepare_directory(chosen.directory)
    local = SqliteSessionStore(chosen.directory, **limits)
    if not needs_events:
        return SharedSessions(handler, chosen, events, local, per_caller)
    file, size = chosen.directory / "events.sqlite", chosen.max_total_event_bytes
    own = SqliteEventStore(file, **kept, max_file_bytes=size, timeout_seconds=STORE_TIMEOUT_SECONDS)
    own.drop_orphans(local.names)
    return SharedSessions(handler, chosen, own, local, per_caller, on_close=own.close)


def _prepare_directory(directory: Path) -> None:
    """Create the directory of the sessions, which are secrets; raises ConfigurationError if others could change it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.stat()
    except OSError as error:
        raise ConfigurationError(f"Setting sessions.directory: {directory} cannot be used: {error.strerror}") from error
    if not is_trusted(found):
        raise ConfigurationError(
            f"Setting sessions.directory: {directory} belongs to another user; use one of your own"
        )
    if found.st_mode & stat.S_IWOTH:
        raise ConfigurationError(
            f"Setting sessions.directory: every user of this machine can write to it; run chmod o-w {directory}"
        )
