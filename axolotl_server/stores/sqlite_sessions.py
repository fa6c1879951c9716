"""Sessions and events in SQLite files, shared by the processes of one machine."""

import asyncio
import os
import secrets
import socket
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.sessions import (
    IEventStore,
    ISessionStore,
    KnownSession,
    SessionChange,
    SessionRecord,
    SessionStoreError,
    StoredEvent,
    hide_session_id,
)

_BUSY_SECONDS: Final = 2.0


class LocalDatabase:
    """A database whose short transactions never wait for the disk: the data need not survive a crash of the machine."""

    def __init__(self, path: Path, schema: str) -> None:
        _make_private(path)
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        for pragma in ("journal_mode = wal", "synchronous = off"):
            self._connection.execute(f"pragma {pragma}").close()
        self._connection.executescript(schema).close()

    def all(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        with closing(self._connection.execute(statement, values)) as cursor:
            return cursor.fetchall()

    def execute(self, statement: str, *values: Any) -> int:
        """Execute a statement and return the number of changed rows."""
        with closing(self._connection.execute(statement, values)) as cursor:
            return cursor.rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block in an exclusive transaction."""
        self._connection.execute("begin immediate").close()
        try:
            yield
        except BaseException:
            self._connection.execute("rollback").close()
            raise
        self._connection.execute("commit").close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _make_private(path: Path) -> None:
    """Create a file that only its owner can read, or make it so; the files beside it get the same mode from SQLite."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigurationError(f"Setting sessions.directory: {path} cannot be used: {error.strerror}") from error
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


_LONGEST_NUMBER: Final = 18
_EVENTS_SCHEMA: Final = """
create table if not exists counts (session text primary key, last integer not null);
create table if not exists events (
    session text not null, number integer not null, stream text not null, message blob not null,
    primary key (session, number)
);
"""


class SqliteEventStore(IEventStore):
    """Keeps the newest events of each session, until the store of sessions drops them."""

    def __init__(self, path: Path, *, max_events: int, max_bytes: int) -> None:
        self._database = LocalDatabase(path, _EVENTS_SCHEMA)
        self._max_events = max_events
        self._max_bytes = max_bytes

    async def append(self, session: str, stream: str, message: bytes) -> str:
        """Keep a message; of one that exceeds the limit by itself, only the ID is kept."""
        key, kept = hide_session_id(session), message if len(message) <= self._max_bytes else b""
        with self._database.transaction():
            [(number,)] = self._database.all(
                "insert into counts values (?, 1) on conflict (session) do update set last = last + 1 returning last",
                key,
            )
            self._database.execute("insert into events values (?, ?, ?, ?)", key, number, stream, kept)
            self._shrink(key, number)
        return str(number)

    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        if not (event_id.isascii() and event_id.isdecimal()) or len(event_id) > _LONGEST_NUMBER:
            return None
        key, number = hide_session_id(session), int(event_id)
        rows = self._database.all("select number, message from events where session = ? and stream = ?", key, stream)
        own: dict[int, bytes] = dict(sorted(rows))
        [(first,)] = self._database.all("select coalesce(min(number), 0) from events where session = ?", key)
        if not own or not (number in own or 0 < number < first):
            return None
        return [StoredEvent(str(kept), message) for kept, message in own.items() if kept > number]

    async def forget(self, session: str, stream: str | None = None) -> None:
        key = hide_session_id(session)
        if stream is not None:
            self._database.execute("delete from events where session = ? and stream = ?", key, stream)
            return
        self._drop(key)

    def drop_ended(self, keys: Iterable[str]) -> None:
        """Delete the events of sessions that have ended; if the file cannot be used now, the next start does it."""
        with suppress(sqlite3.Error):
            for key in keys:
                self._drop(key)

    def keys(self) -> set[str]:
        """Return the hidden IDs of all sessions that have had events."""
        return {key for (key,) in self._database.all("select session from counts")}

    async def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _drop(self, key: str) -> None:
        with self._database.transaction():
            for table in ("events", "counts"):
                self._database.execute(f"delete from {table} where session = ?", key)

    def _shrink(self, key: str, last: int) -> None:
        self._database.execute(
            """
            delete from events where session = ? and (number <= ? or number < (
                select coalesce(min(number), 0) from (
                    select number, sum(length(message)) over (order by number desc) as bytes
                    from events where session = ?
                ) where bytes <= ?
            ))
            """,
            key,
            last - self._max_events,
            key,
            self._max_bytes,
        )


_MAX_MESSAGE_BYTES: Final = 2**20
_PAUSES_SECONDS: Final = (0.01, 0.03, 0.1, 0.3)
"""How long a busy process may take to receive a message."""
_SCHEMA: Final = """
create table if not exists sessions (
    name text primary key, version integer not null, record blob not null, used real not null
);
create table if not exists shares (name text primary key, share text not null);
create index if not exists names_by_share on shares (share);
create table if not exists holders (name text not null, process text not null, primary key (name, process));
"""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(SessionRecord).decode


class SqliteSessionStore(ISessionStore):
    """Keeps sessions in a database, and sends messages to other processes through sockets next to it."""

    def __init__(
        self,
        directory: Path,
        *,
        maximum: int,
        idle_seconds: float,
        maximum_per_principal: int | None = None,
        events: SqliteEventStore | None = None,
    ) -> None:
        """Open the database; with the events of its sessions, they end together."""
        self._directory = directory
        self._events = events
        self._ended: list[str] = []
        self._maximum = maximum
        self._maximum_per_principal = maximum_per_principal
        self._idle_seconds = idle_seconds
        self._process = secrets.token_hex(8)
        self._database = LocalDatabase(directory / "sessions.sqlite", _SCHEMA)
        self._socket: socket.socket | None = None
        self._drop_orphans()

    def _drop_orphans(self) -> None:
        """Drop events whose session ended while nobody could drop them; a session has no events before it is stored."""
        if self._events is not None:
            found = self._events.keys()
            self._events.drop_ended(found - {name for (name,) in self._database.all("select name from sessions")})

    def open(self, receive: Callable[[bytes], object], reconnected: Callable[[], object]) -> None:
        """Begin to receive; messages are never lost, so that `reconnected` is not called."""
        own = self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        own.bind(str(self._directory / self._process))
        own.setblocking(False)

        def read() -> None:
            try:
                receive(own.recv(_MAX_MESSAGE_BYTES))
            except BlockingIOError:
                return

        asyncio.get_running_loop().add_reader(own, read)

    async def begin(self, session: str, record: SessionRecord) -> bool:
        with self._transaction():
            self._drop_idle()
            [(count,)] = self._database.all("select count(*) from sessions")
            if count >= self._maximum or self._is_used_up(record.share):
                return False
            name = hide_session_id(session)
            self._database.execute("insert into sessions values (?, 1, ?, ?)", name, _encode(record), time.monotonic())
            self._database.execute("insert into holders values (?, ?)", name, self._process)
            if record.share is not None:
                self._database.execute("insert into shares values (?, ?)", name, record.share)
            return True

    async def find(self, session: str, known: int) -> KnownSession | None:
        with self._transaction():
            name = hide_session_id(session)
            if not self._use(name):
                return None
            if known == 0:
                self._database.execute("insert or ignore into holders values (?, ?)", name, self._process)
            [(version, record)] = self._database.all("select version, record from sessions where name = ?", name)
            return KnownSession(version, None if version == known else _decode(record))

    async def change(self, session: str, change: SessionChange) -> int | None:
        with self._transaction():
            name = hide_session_id(session)
            if not self._use(name):
                return None
            [(version, record)] = self._database.all("select version, record from sessions where name = ?", name)
            changed = _encode(_decode(record).changed(change))
            statement = "update sessions set version = ?, record = ? where name = ?"
            self._database.execute(statement, version + 1, changed, name)
            return int(version) + 1

    async def hold(self, sessions: Sequence[str]) -> frozenset[str]:
        with self._transaction():
            return frozenset(session for session in sessions if self._use(hide_session_id(session)))

    async def end(self, session: str) -> None:
        with self._transaction():
            self._remove(hide_session_id(session))

    async def send(self, session: str, message: bytes, *, wait: bool = False) -> bool:
        """Send a message to each holder; processes that have died are removed."""
        with self._transaction():
            rows = self._database.all("select process from holders where name = ?", hide_session_id(session))
        received = [await self._send(process, message) for (process,) in rows if process != self._process]
        return any(received)

    async def broadcast(self, message: bytes) -> None:
        for path in tuple(self._directory.iterdir()):
            if path.is_socket() and path.name != self._process:
                await self._send(path.name, message)

    async def close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            (self._directory / self._process).unlink(missing_ok=True)
        self._database.execute("delete from holders where process = ?", self._process)
        self._database.close()

    async def _send(self, process: str, message: bytes) -> bool:
        assert self._socket is not None
        path = self._directory / process
        for pause in (*_PAUSES_SECONDS, None):
            try:
                self._socket.sendto(message, str(path))
                return True
            except (FileNotFoundError, ConnectionRefusedError):
                self._remove_process(process)
                return False
            except BlockingIOError:
                if pause is None:
                    raise SessionStoreError("another process does not receive messages") from None
                await asyncio.sleep(pause)
            except OSError as error:
                raise SessionStoreError(f"a message cannot be sent: {error.strerror}") from None
        return False

    def _remove_process(self, process: str) -> None:
        (self._directory / process).unlink(missing_ok=True)
        with self._transaction():
            self._database.execute("delete from holders where process = ?", process)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._database.transaction():
                yield
        except sqlite3.Error as error:
            raise SessionStoreError(f"the database of sessions cannot be used: {error}") from error
        finally:
            ended, self._ended = self._ended, []
        if ended and self._events is not None:
            self._events.drop_ended(ended)

    def _use(self, name: str) -> bool:
        self._drop_idle()
        return self._database.execute("update sessions set used = ? where name = ?", time.monotonic(), name) == 1

    def _is_used_up(self, share: str | None) -> bool:
        if share is None or self._maximum_per_principal is None:
            return False
        [(count,)] = self._database.all("select count(*) from shares where share = ?", share)
        return bool(count >= self._maximum_per_principal)

    def _drop_idle(self) -> None:
        now = time.monotonic()  # all processes of a machine share this clock, and nobody sets it
        self._database.execute("update sessions set used = ? where used > ?", now, now)  # from before a restart
        for (name,) in self._database.all("select name from sessions where used < ?", now - self._idle_seconds):
            self._remove(name)

    def _remove(self, name: str) -> None:
        for table in ("sessions", "shares", "holders"):
            self._database.execute(f"delete from {table} where name = ?", name)
        self._ended.append(name)
