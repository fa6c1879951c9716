"""Event store in an SQLite file, with which any process of one machine can resume a stream."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from axolotl_core.sessions import IEventStore, StoredEvent
from axolotl_server.stores.sqlite_file import LocalDatabase

_LONGEST_NUMBER: Final = 18
_EVENTS_SCHEMA: Final = """
create table if not exists logs (
    session text primary key, last integer not null, events integer not null, bytes integer not null
);
create index if not exists logs_by_size on logs (bytes + 150 * events desc);
create table if not exists events (
    session text not null, number integer not null, stream text not null, message blob not null,
    primary key (session, number)
);
"""
"""A log has the last number that was given, and how many events and bytes are left; an event takes 150 bytes more."""


class SqliteEventStore(IEventStore):
    """Keeps the newest events of each session.

    If the file becomes too large, the session that takes up the most of it loses its oldest events.
    """

    def __init__(
        self, path: Path, *, max_events: int, max_bytes: int, max_file_bytes: int, timeout_seconds: float = 1.0
    ) -> None:
        self._database = LocalDatabase(path, _EVENTS_SCHEMA, timeout_seconds)
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._max_file_bytes = max_file_bytes

    async def append(self, session: str, stream: str, message: bytes) -> str:
        """Keep a message; of one that exceeds the limit by itself, only the ID is kept."""
        kept = message if len(message) <= self._max_bytes else b""
        return str(await self._database.run(lambda: self._append(session, stream, kept)))

    def _append(self, key: str, stream: str, kept: bytes) -> int:
        [(number, events, size)] = self._database.all(
            """
            insert into logs values (?1, 1, 1, ?2) on conflict (session)
            do update set last = last + 1, events = events + 1, bytes = bytes + ?2 returning last, events, bytes
            """,
            key,
            len(kept),
        )
        self._database.execute("insert into events values (?, ?, ?, ?)", key, number, stream, kept)
        if events > self._max_events:
            self._drop_oldest(key, events - self._max_events)
        if size > self._max_bytes:
            self._drop_above(key, self._max_bytes)
        self._shrink()
        return int(number)

    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        if not (event_id.isascii() and event_id.isdecimal()) or len(event_id) > _LONGEST_NUMBER:
            return None
        return await self._database.run(lambda: self._after(session, stream, int(event_id)), "begin")

    def _after(self, key: str, stream: str, number: int) -> Sequence[StoredEvent] | None:
        rows = self._database.all("select number, message from events where session = ? and stream = ?", key, stream)
        own: dict[int, bytes] = dict(sorted(rows))
        [(first,)] = self._database.all("select coalesce(min(number), 0) from events where session = ?", key)
        if not own or not (number in own or 0 < number < first):
            return None
        return [StoredEvent(str(kept), message) for kept, message in own.items() if kept > number]

    async def forget(self, session: str, stream: str | None = None) -> None:
        await self._database.run(
            lambda: self._drop([session]) if stream is None else self._delete(session, "stream = ?", stream)
        )

    def drop_orphans(self, alive: Callable[[], Collection[str]]) -> None:
        """Delete the events of sessions that ended while nobody could do so; if it fails, the next start does it.

        A session has no events before it is stored, so that the sessions are read after the events.
        """
        with suppress(sqlite3.Error), self._database.transaction():
            found = {key for (key,) in self._database.all("select session from logs")}
            self._drop(found.difference(alive()))

    async def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            for table in ("events", "logs"):
                self._database.execute(f"delete from {table} where session = ?", key)

    def _shrink(self) -> None:
        """Drop events until the file is small enough, more and more at a time, so that a large one has room soon."""
        count = 1
        while self._database.used_bytes > self._max_file_bytes:
            largest = self._database.all("select session, events from logs order by bytes + 150 * events desc limit 1")
            if not largest or not largest[0][1]:
                return
            self._drop_oldest(largest[0][0], count)
            count *= 2

    def _drop_oldest(self, key: str, count: int) -> None:
        oldest = "number in (select number from events where session = ? order by number limit ?)"
        self._delete(key, oldest, key, count)

    def _drop_above(self, key: str, max_bytes: int) -> None:
        newest = """
            select coalesce(min(number), 0) from (
                select number, sum(length(message)) over (order by number desc) as bytes
                from events where session = ?
            ) where bytes <= ?
            """
        self._delete(key, f"number < ({newest})", key, max_bytes)

    def _delete(self, key: str, condition: str, *values: Any) -> None:
        statement = f"delete from events where session = ? and {condition} returning length(message)"
        sizes = [size for (size,) in self._database.all(statement, key, *values)]
        change = "update logs set events = events - ?, bytes = bytes - ? where session = ?"
        self._database.execute(change, len(sizes), sum(sizes), key)
