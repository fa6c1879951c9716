"""Audit records as rows of an SQLite database, with columns to search by."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.policies.audit import AuditRecord, timestamp
from axolotl_server.audit.chain import Chain, Hashing
from axolotl_server.audit.log_files import OPEN_FLAGS, LogLock, check_regular
from axolotl_server.audit.records import encode_note, encode_record
from axolotl_server.audit.recovery import Start, Unfinished, check_last, read_summary
from axolotl_server.audit.sinks import IRecordStore

_COLUMNS: Final = ("time", "event", "call_id", "kind", "name", "subject", "tenant", "outcome", "reason", "trace_id")
"""Computed from the line when they are read, so that they cannot differ from it."""

_SCHEMA: Final = f"""
    CREATE TABLE IF NOT EXISTS records (
        seq INTEGER PRIMARY KEY,
        line TEXT NOT NULL,
        {", ".join(f"{name} TEXT GENERATED ALWAYS AS (json_extract(line, '$.{name}')) VIRTUAL" for name in _COLUMNS)}
    );
    CREATE TABLE IF NOT EXISTS unfinished (call_id TEXT PRIMARY KEY, start TEXT NOT NULL) WITHOUT ROWID;
"""


class SqliteStore(IRecordStore):
    """Commits each group of records in one transaction; readers never wait, thanks to the write-ahead log."""

    def __init__(self, path: Path, hashing: Hashing, *, durable: bool = False) -> None:
        self._path = path
        self._hashing = hashing
        self._durable = durable
        self._database: sqlite3.Connection
        self._chain: Chain
        self._lock: LogLock

    def open(self) -> None:
        check_regular(self._path)
        with ExitStack() as undo:
            self._lock = LogLock(self._path)
            undo.callback(self._lock.release)
            os.close(os.open(self._path, OPEN_FLAGS, 0o600))  # only the owner may read it
            # One thread at a time uses a store, but not always the same one.
            self._database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            undo.callback(self._database.close)
            self._prepare()
            undo.pop_all()

    def append(self, records: Sequence[AuditRecord]) -> None:
        self._commit([encode_record(record) for record in records])

    def sync(self) -> None:
        """Do nothing: commits wait for the disk if the log is durable."""

    def close(self) -> None:
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
            self._chain.reset(*check_last(last[0].encode(), str(self._path), self._hashing.of_record))
        opening = encode_note(timestamp(), "open", algorithm=self._hashing.algorithm, kept_from=1)
        self._commit([opening, *map(encode_record, self._unfinished().make_endings())])

    def _unfinished(self) -> Unfinished:
        rows = self._database.execute("SELECT start FROM unfinished").fetchall()
        starts = [msgspec.json.decode(row[0], type=Start) for row in rows]
        return Unfinished({start.call_id: start for start in starts})

    def _commit(self, bodies: Sequence[bytes]) -> None:
        """Link records and write them in one transaction; a failure leaves chain and database as they were."""
        chain, database = self._chain, self._database
        seq, head = chain.seq, chain.head
        try:
            database.execute("BEGIN IMMEDIATE")
            for body in bodies:
                line = chain.link(body)[:-1].decode()
                database.execute("INSERT INTO records (seq, line) VALUES (?, ?)", (chain.seq, line))
                self._update_unfinished(body)
            database.execute("COMMIT")
        except BaseException:
            chain.reset(seq, head)
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise

    def _update_unfinished(self, body: bytes) -> None:
        """Keep running calls in their own table, so that recovery need not read the whole log."""
        line = read_summary(body)
        if line.call_id is None:
            return
        self._database.execute("DELETE FROM unfinished WHERE call_id = ?", (line.call_id,))
        if line.event == "start":
            row = (line.call_id, msgspec.json.encode(line.start(line.call_id)).decode())
            self._database.execute("INSERT INTO unfinished (call_id, start) VALUES (?, ?)", row)

    def __str__(self) -> str:
        return f"The audit log {self._path}"
