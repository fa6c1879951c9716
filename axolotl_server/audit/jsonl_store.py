"""Audit records as lines of a file, with rotation; a thread waits for the disk, for all calls that end meanwhile."""

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from axolotl_core.policies.audit import AuditRecord, IAuditSink, timestamp
from axolotl_server.audit.chain import Hashing
from axolotl_server.audit.log_files import LogLock, check_regular, previous_segments, segment_path, sync_directory
from axolotl_server.audit.records import encode_note, encode_record, without_surrogates
from axolotl_server.audit.recovery import LogState, recover

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_sync_data: Final = getattr(os, "fdatasync", os.fsync)
_CLOSE_SECONDS: Final = 5.0
_log: Final = logging.getLogger("axolotl")


class JsonlStore(IAuditSink):
    """Appends records with one write each, so that a process that dies leaves whole lines.

    A full file is renamed, and the next one continues the chain. One thread at a time may use a store.
    """

    def __init__(
        self, path: Path, hashing: Hashing, *, max_bytes: int, max_files: int | None = None, durable: bool = False
    ) -> None:
        self._path = path
        self._hashing = hashing
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._durable = durable
        self._descriptor = -1
        self._has_partial_line = False
        self._state: LogState
        self._lock: LogLock

    def open(self) -> None:
        """Find the end of the chain, repair the damage of a crash, and record both.

        Raises ConfigurationError if the log cannot be continued, and OSError if there is no access to it.
        """
        check_regular(self._path)
        with ExitStack() as undo:
            self._lock = LogLock(self._path)
            undo.callback(self._lock.release)
            self._state = recover(self._path, self._hashing.of_record)
            self._descriptor = os.open(self._path, _FLAGS, 0o600)
            undo.callback(os.close, self._descriptor)
            self._resume()
            undo.pop_all()

    def write(self, record: AuditRecord) -> None:
        self.append((record,))

    def append(self, records: Sequence[AuditRecord]) -> None:
        """Pass records to the operating system: all of them, or none if it raises an exception."""
        if self._state.size >= self._max_bytes:
            self._rotate()
        self._write([encode_record(record) for record in records])
        for record in records:
            self._state.unfinished.add(record)

    def sync(self) -> None:
        """Wait until everything appended is on disk."""
        _sync_data(self._descriptor)

    def close(self) -> None:
        try:
            with suppress(OSError):
                self._write([encode_note("close")])
                self.sync()
        finally:
            os.close(self._descriptor)
            self._lock.release()

    def _resume(self) -> None:
        """Record what was found: repairs, and calls whose process died, which get an end."""
        state, self._has_partial_line = self._state, False
        if state.unfinished:
            _log.warning("%d audited calls were running when the last process died", len(state.unfinished))
        bodies = [self._opening(), *(encode_note("repair", **repair._asdict()) for repair in state.repairs)]
        unknown = {"event": "end", "outcome": "unknown", "reason": "the process ended before the call did"}
        for start in state.unfinished.values():
            fields = msgspec.structs.asdict(start) | unknown | {"time": timestamp()}
            bodies.append(encode_record(AuditRecord(**fields)))
        self._write(bodies)
        state.unfinished.clear()
        if self._durable:
            self.sync()
            sync_directory(self._path)

    def _write(self, bodies: Sequence[bytes]) -> None:
        """Link records and write them together; a failure leaves chain and file as they were."""
        if self._has_partial_line:
            self._cut_partial_line()
        chain, descriptor, written = self._state.chain, self._descriptor, 0
        seq, head = chain.seq, chain.head
        try:
            data = b"".join([chain.link(body) for body in bodies])
            written = os.write(descriptor, data)
            while written < len(data):
                written += os.write(descriptor, data[written:])
        except BaseException:
            chain.reset(seq, head)
            self._has_partial_line = written > 0
            if self._has_partial_line:
                with suppress(OSError):  # tried again before the next record
                    self._cut_partial_line()
            raise
        self._state.size += written

    def _cut_partial_line(self) -> None:
        os.ftruncate(self._descriptor, self._state.size)
        self._has_partial_line = False

    def _rotate(self) -> None:
        """Begin the next file; if a step fails, everything is left so that it can be tried again."""
        state = self._state
        full = segment_path(self._path, state.first)
        if self._durable:
            self.sync()
        if self._path.exists():
            self._path.rename(full)
        before = (self._descriptor, state.size, state.first, state.kept_from)
        self._descriptor = os.open(self._path, _FLAGS | os.O_EXCL, 0o600)
        try:
            state.size, state.first = 0, state.chain.seq + 1
            segments = previous_segments(self._path)
            kept = segments if self._max_files is None else segments[-self._max_files :]
            dropped = segments[: len(segments) - len(kept)]
            if dropped:
                state.kept_from = kept[0].first
            self._write([self._opening()])
        except BaseException:
            self._path.unlink()
            os.close(self._descriptor)
            self._descriptor, state.size, state.first, state.kept_from = before
            self._has_partial_line = False
            raise
        os.close(before[0])
        for segment in dropped:
            segment.path.unlink(missing_ok=True)
        if self._durable:
            self.sync()
            sync_directory(self._path)

    def _opening(self) -> bytes:
        unfinished = [without_surrogates(msgspec.structs.asdict(one)) for one in self._state.unfinished.values()]
        details = {"algorithm": self._hashing.algorithm, "kept_from": self._state.kept_from, "unfinished": unfinished}
        return encode_note("open", **details)

    def __str__(self) -> str:
        return f"The audit log {self._path}"


class _QueuedRecord(NamedTuple):
    record: AuditRecord
    stored: asyncio.Future[None]


class GroupSink(IAuditSink):
    """Writes records in a thread; all records that arrive during a write share the next one, and its wait for the disk.

    Only the calls whose records are being written wait. If `capacity` records wait, further calls wait for room.
    """

    def __init__(self, store: JsonlStore, *, capacity: int = 1024) -> None:
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
            error: Exception | None = None
            try:
                self._store.append([queued.record for queued in group])
                self._store.sync()
            except Exception as failure:
                error = failure
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
