"""Group commit: one thread writes, and all records that came meanwhile share the next wait for the disk."""

import asyncio
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from axolotl_core.policies.audit import AuditRecord, IAuditSink
from axolotl_server.audit.records import encode_record


class IRecordStore(ABC):
    """Keeps records in a chain; spoken to by one thread at a time."""

    @abstractmethod
    def open(self) -> None:
        """Find the end of the chain, mend what a crash left behind, and write down both.

        Raises:
            ConfigurationError: if what is there cannot be continued.
            OSError: if it cannot be reached.
        """

    @abstractmethod
    def append(self, records: Sequence[AuditRecord]) -> None:
        """Hand records to the system: all of them, or none if it raises something."""

    @abstractmethod
    def sync(self) -> None:
        """Wait until everything appended is on the disk."""

    @abstractmethod
    def close(self) -> None:
        """Write down that the log was closed, and let go of it."""


_STDERR: Final = 2


class StderrSink(IAuditSink):
    """Writes one line a record. There is no chain: nobody knows where the one before has gone."""

    def write(self, record: AuditRecord) -> None:
        """Write a line.

        Raises:
            OSError: if the stream is closed or full.
        """
        line = encode_record(record) + b"\n"
        while line:
            line = line[os.write(_STDERR, line) :]

    def __str__(self) -> str:
        return "The standard error stream"


_log: Final = logging.getLogger("axolotl")


class DirectSink(IAuditSink):
    """Hands each record to the system at once: it outlives the process, though not the machine."""

    def __init__(self, store: IRecordStore) -> None:
        self._store = store

    def write(self, record: AuditRecord) -> None:
        """Append it."""
        self._store.append((record,))

    def open(self) -> None:
        """Open the store."""
        self._store.open()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __str__(self) -> str:
        return str(self._store)


class BufferedSink(IAuditSink):
    """Holds records back for half a second, or until there are enough to be worth the trouble.

    What cannot be written stays until it can; when there is no more room, records are refused.
    """

    def __init__(
        self, store: IRecordStore, *, delay_seconds: float = 0.5, worthwhile: int = 128, maximum: int = 1024
    ) -> None:
        self._store = store
        self._delay_seconds = delay_seconds
        self._worthwhile = worthwhile
        self._maximum = maximum
        self._held: list[AuditRecord] = []
        self._timer: asyncio.TimerHandle | None = None
        self._failing = False

    def open(self) -> None:
        """Open the store."""
        self._store.open()

    def write(self, record: AuditRecord) -> None:
        """Hold it.

        Raises:
            OSError: if the buffer is full because nothing can be written.
        """
        if len(self._held) >= self._maximum:
            self._append()
        self._held.append(record)
        if len(self._held) >= self._worthwhile and not self._failing:
            self._try()
        if self._held and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay_seconds, self._wake)

    def close(self) -> None:
        """Write what is held."""
        if self._timer is not None:
            self._timer.cancel()
        if self._held:
            self._try()
        self._store.close()

    def _wake(self) -> None:
        self._timer = None
        self._try()
        if self._held:
            self._timer = asyncio.get_running_loop().call_later(self._delay_seconds, self._wake)

    def _try(self) -> None:
        try:
            self._append()
        except Exception as error:
            if not self._failing:
                _log.error("%s cannot be written, records are held back: %s", self, error)
            self._failing = True

    def _append(self) -> None:
        self._store.append(self._held)
        self._held.clear()
        self._failing = False

    def __str__(self) -> str:
        return str(self._store)


_PATIENCE_SECONDS: Final = 5.0


class _Waiting(NamedTuple):
    record: AuditRecord
    kept: asyncio.Future[None]


class GroupSink(IAuditSink):
    """Keeps the event loop free: a call waits until the group of its record is kept, and no other call does.

    Not more than `maximum` records wait; further calls wait until there is room.
    """

    def __init__(self, store: IRecordStore, *, maximum: int = 1024) -> None:
        self._store = store
        self._maximum = maximum
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._busy = False
        self._ending = False
        self._room: list[asyncio.Future[None]] = []
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Open the store and start the thread."""
        self._store.open()
        self._thread = threading.Thread(target=self._work, name="axolotl-audit", daemon=True)
        self._thread.start()

    def write(self, record: AuditRecord) -> Awaitable[None]:
        """Give a record to the thread, or wait until it can take one."""
        if self._ending:
            raise RuntimeError("the audit log is closed")
        if len(self._waiting) >= self._maximum:
            return self._write_later(record)
        kept = asyncio.get_running_loop().create_future()
        with self._changed:
            self._waiting.append(_Waiting(record, kept))
            self._changed.notify_all()
        return kept

    def flush(self, seconds: float) -> bool:
        """Block until the thread has nothing left to do."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, seconds)

    def close(self) -> None:
        """Let the thread finish, and close the store; a disk that does not answer is not waited for much longer."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_PATIENCE_SECONDS)
            if self._thread.is_alive():
                _log.error("%s does not answer: records of the last calls may be lost", self)
                return
        self._store.close()

    async def _write_later(self, record: AuditRecord) -> None:
        while len(self._waiting) >= self._maximum:
            room = asyncio.get_running_loop().create_future()
            self._room.append(room)
            await room
        await self.write(record)

    def _work(self) -> None:
        while group := self._next_group():
            error = self._keep([waiting.record for waiting in group])
            with self._changed:
                self._busy = False
                self._changed.notify_all()
            with suppress(RuntimeError):  # the loop has ended before the thread, and nobody waits any more
                group[0].kept.get_loop().call_soon_threadsafe(self._tell, group, error)

    def _next_group(self) -> list[_Waiting]:
        """Wait for records; an empty group is the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ending)
            group, self._waiting = self._waiting, []
            self._busy = bool(group)
            return group

    def _keep(self, records: list[AuditRecord]) -> Exception | None:
        try:
            self._store.append(records)
            self._store.sync()
        except Exception as error:
            return error
        return None

    def _tell(self, group: list[_Waiting], error: Exception | None) -> None:
        """Let the calls of a group go on, in the loop's thread."""
        for _, kept in group:
            if kept.done():
                continue
            if error is None:
                kept.set_result(None)
            else:
                kept.set_exception(error)
        room, self._room = self._room, []
        for waiting in room:
            if not waiting.done():
                waiting.set_result(None)

    def __str__(self) -> str:
        return str(self._store)
