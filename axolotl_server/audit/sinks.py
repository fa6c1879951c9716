"""Audit sinks of the server: standard error, and group commit in a thread."""

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from axolotl_core.policies.audit import AuditRecord, IAuditSink
from axolotl_server.audit.records import encode_record

if TYPE_CHECKING:
    from axolotl_server.audit.jsonl_store import JsonlStore


_STDERR: Final = 2


class StderrSink(IAuditSink):
    """Writes one line per record, without a chain: earlier lines cannot be read back."""

    def write(self, record: AuditRecord) -> None:
        line = encode_record(record) + b"\n"
        while line:
            line = line[os.write(_STDERR, line) :]

    def __str__(self) -> str:
        return "The standard error stream"


_log: Final = logging.getLogger("axolotl")
_CLOSE_SECONDS: Final = 5.0


class _QueuedRecord(NamedTuple):
    record: AuditRecord
    stored: asyncio.Future[None]


class GroupSink(IAuditSink):
    """Writes records in a thread; all records that arrive during a write share the next one, and its wait for the disk.

    Only the calls whose records are being written wait. If `capacity` records wait, further calls wait for room.
    """

    def __init__(self, store: "JsonlStore", *, capacity: int = 1024) -> None:
        self._store = store
        self._capacity = capacity
        self._changed = threading.Condition()
        self._queue: list[_QueuedRecord] = []
        self._busy = False
        self._closing = False
        self._room: list[asyncio.Future[None]] = []
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        self._store.open()
        self._thread = threading.Thread(target=self._work, name="axolotl-audit", daemon=True)
        self._thread.start()

    def write(self, record: AuditRecord) -> Awaitable[None]:
        if self._closing:
            raise RuntimeError("the audit log is closed")
        if len(self._queue) >= self._capacity:
            return self._write_later(record)
        stored = asyncio.get_running_loop().create_future()
        with self._changed:
            self._queue.append(_QueuedRecord(record, stored))
            self._changed.notify_all()
        return stored

    def flush(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._busy, seconds)

    def close(self) -> None:
        """Let the thread finish, and close the store; a disk that hangs is abandoned after some seconds."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)
            if self._thread.is_alive():
                _log.error("%s did not close in time; records of the last calls may be lost", self)
                return
        self._store.close()

    async def _write_later(self, record: AuditRecord) -> None:
        while len(self._queue) >= self._capacity:
            room = asyncio.get_running_loop().create_future()
            self._room.append(room)
            await room
        await self.write(record)

    def _work(self) -> None:
        while group := self._next_group():
            error = self._store_group([queued.record for queued in group])
            with self._changed:
                self._busy = False
                self._changed.notify_all()
            with suppress(RuntimeError):  # the loop was closed before the thread ended
                group[0].stored.get_loop().call_soon_threadsafe(self._settle, group, error)

    def _next_group(self) -> list[_QueuedRecord]:
        """Wait for records; an empty group means that the sink is closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            group, self._queue = self._queue, []
            self._busy = bool(group)
            return group

    def _store_group(self, records: list[AuditRecord]) -> Exception | None:
        try:
            self._store.append(records)
            self._store.sync()
        except Exception as error:
            return error
        return None

    def _settle(self, group: list[_QueuedRecord], error: Exception | None) -> None:
        """Resume the calls of a group, in the thread of the event loop."""
        for _, stored in group:
            if stored.done():
                continue
            if error is None:
                stored.set_result(None)
            else:
                stored.set_exception(error)
        room, self._room = self._room, []
        for waiting in room:
            if not waiting.done():
                waiting.set_result(None)

    def __str__(self) -> str:
        return str(self._store)
