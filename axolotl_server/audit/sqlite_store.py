"""Records as rows of a SQLite database: the same lines, with columns to search by."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.policies.audit import AuditRecord
from axolotl_server.audit.chain import Chain, Hashing
from axolotl_server.audit.log_files import LogLock
from axolotl_server.audit.records import encode_note, encode_record, timestamp
from axolotl_server.audit.recovery import Start, Unfinished, check_last, glance
from axolotl_server.audit.sinks import IRecordStore

_COLUMNS: Final = ("time", "event", "call_id", "kind", "name", "subject", "tenant", "outcome", "reason", "trace_id")
"""Computed from the line wherever they are asked for, so that they cannot differ from it."""

_SCHEMA: Final = f"""
    CREATE TABLE IF NOT EXISTS records (
        seq INTEGER PRIMARY KEY,
        line TEXT NOT NULL,
        {", ".join(f"{name} TEXT GENERATED ALWAYS AS (json_extract(line, '$.{name}')) VIRTUAL" for name in _COLUMNS)}
    );
    CREATE TABLE IF NOT EXISTS unfinished (call_id TEXT PRIMARY KEY, start TEXT NOT NULL) WITHOUT ROWID;
"""


class SqliteStore(IRecordStore):
    """Commits each group of records in one transaction, to a write-ahead log that any number of readers can read."""

    def __init__(self, path: Path, hashing: Hashing, *, durable: bool = False) -> None:
        self._path = path
        self._hashing = hashing
        self._durable = durable
        self._database: sqlite3.Connection
        self._chain: Chain
        self._lock: LogLock

    def open(self) -> None:
        """Take the database, and write down that the log goes on."""
        with ExitStack() as undo:
            self._lock = LogLock(self._path)
            undo.callback(self._lock.release)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # others may not read it
            # Only one thread at a time speaks to a store, though not always the same.
            self._database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            undo.callback(self._database.close)
            self._prepare()
            undo.pop_all()

    def append(self, records: Sequence[AuditRecord]) -> None:
        """Commit rows."""
        self._commit([encode_record(record) for record in records])

    def sync(self) -> None:
        """Do nothing: a commit has waited for the disk, where that is wanted."""

    def close(self) -> None:
        """Write a last row, if that is possible."""
        try:
            with suppress(sqlite3.Error):
                self._commit([encode_note(timestamp(), "close")])
        finally:
            self._database.close()
            self._lock.release()

    def _prepare(self) -> None:
        database = self._database
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
            database.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise ConfigurationError(f"The audit log {self._path} cannot be used: {error}") from error
        self._chain = Chain(self._hashing.of_record)
        last = database.execute("SELECT line FROM records ORDER BY seq DESC LIMIT 1").fetchone()
        if last is not None:
            self._chain.back_to(*check_last(last[0].encode(), str(self._path), self._hashing.of_record))
        opening = encode_note(timestamp(), "open", algorithm=self._hashing.algorithm, kept_from=1)
        self._commit([opening, *map(encode_record, self._unfinished().endings())])

    def _unfinished(self) -> Unfinished:
        rows = self._database.execute("SELECT start FROM unfinished").fetchall()
        starts = [msgspec.json.decode(row[0], type=Start) for row in rows]
        return Unfinished({start.call_id: start for start in starts})

    def _commit(self, bodies: Sequence[bytes]) -> None:
        """Link records and write them in one transaction; if that fails, it is as if they had never been."""
        chain, database = self._chain, self._database
        seq, head = chain.seq, chain.head
        try:
            database.execute("BEGIN IMMEDIATE")
            for body in bodies:
                line = chain.link(body)[:-1].decode()
                database.execute("INSERT INTO records (seq, line) VALUES (?, ?)", (chain.seq, line))
                self._follow(body)
            database.execute("COMMIT")
        except BaseException:
            chain.back_to(seq, head)
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise

    def _follow(self, body: bytes) -> None:
        """Keep the calls that began in a table of their own, so that a start need not read the whole log."""
        seen = glance(body)
        if seen.call_id is None:
            return
        self._database.execute("DELETE FROM unfinished WHERE call_id = ?", (seen.call_id,))
        if seen.event == "start":
            start = Start(seen.call_id, seen.time, seen.kind, seen.name, seen.subject, seen.tenant)
            row = (seen.call_id, msgspec.json.encode(start).decode())
            self._database.execute("INSERT INTO unfinished (call_id, start) VALUES (?, ?)", row)

    def __str__(self) -> str:
        return f"The audit log {self._path}"
