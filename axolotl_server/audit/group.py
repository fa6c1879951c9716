"""Group commit: one thread writes, and all records that came meanwhile share the next wait for the disk."""

import asyncio
import logging
import threading
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final, NamedTuple

from axolotl_core.audit import AuditRecord, IAuditSink
from axolotl_server.audit.store import IRecordStore

__all__ = ["GroupSink"]

_PATIENCE_SECONDS: Final = 5.0

_log: Final = logging.getLogger("axolotl")


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
