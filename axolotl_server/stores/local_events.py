"""Events in a file, so that a process that replaces another can go on with its streams."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

from axolotl_core.event_store import IEventStore, StoredEvent
from axolotl_server.stores.local_database import LocalDatabase

__all__ = ["LocalEventStore"]

_LONGEST_NUMBER: Final = 18
_SCHEMA: Final = """
create table if not exists counts (session text primary key, last integer not null);
create table if not exists events (
    session text not null, number integer not null, stream text not null, message blob not null,
    primary key (session, number)
);
"""


class LocalEventStore(IEventStore):
    """Keeps the newest events of each session."""

    def __init__(self, path: Path, *, max_events: int, max_bytes: int) -> None:
        self._database = LocalDatabase(path, _SCHEMA)
        self._max_events = max_events
        self._max_bytes = max_bytes

    async def append(self, session: str, stream: str, message: bytes) -> str:
        """Keep a message; one that exceeds the bound all by itself leaves its id and nothing else."""
        key, kept = _hidden(session), message if len(message) <= self._max_bytes else b""
        with self._database.alone():
            [(number,)] = self._database.all(
                "insert into counts values (?, 1) on conflict (session) do update set last = last + 1 returning last",
                key,
            )
            self._database.changed("insert into events values (?, ?, ?, ?)", key, number, stream, kept)
            self._shrink(key, number)
        return str(number)

    async def after(self, session: str, stream: str, event_id: str) -> Sequence[StoredEvent] | None:
        """Give what followed an event on its own stream."""
        if not (event_id.isascii() and event_id.isdecimal()) or len(event_id) > _LONGEST_NUMBER:
            return None
        key, number = _hidden(session), int(event_id)
        rows = self._database.all("select number, message from events where session = ? and stream = ?", key, stream)
        own: dict[int, bytes] = dict(sorted(rows))
        [(first,)] = self._database.all("select coalesce(min(number), 0) from events where session = ?", key)
        if not own or not (number in own or 0 < number < first):
            return None
        return [StoredEvent(str(kept), message) for kept, message in own.items() if kept > number]

    async def forget(self, session: str, stream: str | None = None) -> None:
        """Drop a stream or a session."""
        key = _hidden(session)
        if stream is not None:
            self._database.changed("delete from events where session = ? and stream = ?", key, stream)
            return
        with self._database.alone():
            for table in ("events", "counts"):
                self._database.changed(f"delete from {table} where session = ?", key)

    async def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _shrink(self, key: str, last: int) -> None:
        self._database.changed(
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


def _hidden(session: str) -> str:
    """Give a name from which the id of a session, which opens it to its bearer, cannot be read."""
    return blake2b(session.encode(), digest_size=16).hexdigest()
