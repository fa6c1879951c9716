"""One sink, and how it is doing."""

import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

from axolotl_core.audit import AuditRecord, IAuditSink
from axolotl_server.audit.timestamps import timestamp

__all__ = ["GuardedSink"]

_LOGGED_EVERY_SECONDS: Final = 10.0

_log: Final = logging.getLogger("axolotl")


class GuardedSink:
    """A sink that is left alone for a moment after it failed, and tried again then."""

    def __init__(self, sink: IAuditSink, retry_seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._sink = sink
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._opened = False
        self._retry_at = self._logged_at = float("-inf")
        self._untold = 0
        self.write = sink.write
        self.ready = False
        """Whether it is open and kept what it was given; `prepare` may make it so."""
        self.broken = False
        """Whether it failed and did not recover."""
        self.lost = 0
        """How many records it did not keep."""

    def prepare(self) -> bool:
        """Open it when it is first needed; answers whether it is ready."""
        if not self.broken:
            try:
                self.open()
            except Exception as error:
                self.fail(error, lost=0)
        return self.ready

    def open(self) -> None:
        """Open the sink, unless it is."""
        if not self._opened:
            self._sink.open()
            self._opened = True
            self.ready = not self.broken

    def flush(self, seconds: float) -> None:
        """Block until it has kept what it took."""
        if self.ready and not self._sink.flush(seconds):
            self.fail(TimeoutError(f"it did not answer in {seconds:g} seconds"), lost=0)

    def may_try(self) -> bool:
        """Tell whether it is time to try a broken sink again; whoever asks is the one to try."""
        now = self._clock()
        if now < self._retry_at:
            return False
        self._retry_at = now + self._retry_seconds
        return True

    def lose(self, records: int = 1) -> None:
        """Count records that were not kept."""
        self._untold += records
        self.lost += records

    def fail(self, error: BaseException, *, lost: int = 1) -> None:
        """Take notice of a failure, and of the records that were not kept because of it."""
        self.lose(lost)
        self.ready, self.broken = False, True
        now = self._clock()
        self._retry_at = now + self._retry_seconds
        if now - self._logged_at >= _LOGGED_EVERY_SECONDS:
            self._logged_at = now
            _log.error("%s keeps no audit records: %s: %s", self, type(error).__name__, error)

    async def resume(self, record: AuditRecord | None) -> None:
        """Give a broken sink what it missed: how many records that were, then the one at hand."""
        self.open()
        await self._tell_losses()
        if record is not None:
            await _kept(self._sink.write(record))
        await self._tell_losses()
        self.ready, self.broken = True, False
        _log.warning("%s keeps audit records again; so far %d were lost", self, self.lost)

    def close(self) -> None:
        """Close the sink if it is open; it takes no record any more."""
        self.ready, self.broken, self._retry_at = False, True, float("inf")
        if self._opened:
            self._opened = False
            self._sink.close()

    async def _tell_losses(self) -> None:
        while self._untold:
            lost = self._untold
            await _kept(self._sink.write(AuditRecord(time=timestamp(), event="gap", lost=lost)))
            self._untold -= lost

    def __str__(self) -> str:
        sink = self._sink
        return type(sink).__name__ if type(sink).__str__ is object.__str__ else str(sink)


async def _kept(waiting: Awaitable[None] | None) -> None:
    if waiting is not None:
        await waiting
