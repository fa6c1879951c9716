"""How much has happened to a record when its caller is answered: it stands in a buffer, or the system has it."""

import asyncio
import logging
from typing import Final

from axolotl_core.audit import AuditRecord, IAuditSink
from axolotl_server.audit.store import IRecordStore

__all__ = ["BufferedSink", "DirectSink"]

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
