"""All sinks of a server, and what happens to calls when one of them fails."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Final

from axolotl_core.errors import ConfigurationError, Refused, ToolError
from axolotl_core.policies.audit import AuditRecord, IAuditSink
from axolotl_server.audit.records import timestamp
from axolotl_server.lifecycle.outage_log import OutageLog
from axolotl_server.settings.policies import OnFailure

_log: Final = logging.getLogger("axolotl")


class RetryingSink:
    """A sink that is left alone for a moment after it failed, and tried again then."""

    def __init__(self, sink: IAuditSink, retry_seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._sink = sink
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._opened = False
        self._retry_at = float("-inf")
        self._untold = 0
        self._outages = OutageLog(str(self), "audit records lost", level=logging.ERROR, clock=clock)
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
        self._outages.count(records)

    def fail(self, error: BaseException, *, lost: int = 1) -> None:
        """Take notice of a failure, and of the records that were not kept because of it."""
        self.lose(lost)
        self.ready, self.broken = False, True
        self._retry_at = self._clock() + self._retry_seconds
        self._outages.failed(f"{type(error).__name__}: {error}", effects=0)

    async def resume(self, record: AuditRecord | None) -> None:
        """Give a broken sink what it missed: how many records that were, then the one at hand."""
        self.open()
        await self._tell_losses()
        if record is not None:
            await _kept(self._sink.write(record))
        await self._tell_losses()
        self.ready, self.broken = True, False
        self._outages.recovered()

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


_RETRY_SECONDS: Final = 1.0
_LONGEST_BLOCK_SECONDS: Final = 1.0
"""How long everything may stand still for the record of a call that was abandoned."""


class AuditTrail:
    """Gives every record to every sink.

    If one fails, and failures are `closed`, calls are refused until it works again, and a call whose record was not
    kept answers with an error. If they are `open`, calls go on and the losses are counted. A sink that failed is tried
    again every second; the first thing it is given then is a record of how many it missed.
    """

    def __init__(
        self,
        sinks: Sequence[IAuditSink],
        on_failure: OnFailure,
        timeout_seconds: float,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        self._sinks = [RetryingSink(sink, retry_seconds) for sink in sinks]
        self._closed = on_failure == "closed"
        self._timeout_seconds = timeout_seconds
        self._retry_seconds = retry_seconds
        self._following: set[asyncio.Task[bool]] = set()

    @property
    def broken(self) -> bool:
        """Whether a sink fails at the moment."""
        return any(sink.broken for sink in self._sinks)

    @property
    def lost(self) -> int:
        """How many records were not kept since the start, counted for each sink."""
        return sum(sink.lost for sink in self._sinks)

    def open(self) -> None:
        """Open all sinks before the first call; otherwise they are opened with it.

        Raises:
            ConfigurationError: if one cannot be used.
        """
        for sink in self._sinks:
            try:
                sink.open()
            except OSError as error:
                raise ConfigurationError(f"The audit log cannot be opened: {error}") from error

    def close(self) -> None:
        """Close all sinks."""
        for sink in self._sinks:
            try:
                sink.close()
            except Exception:
                _log.exception("%s does not close", sink)

    def admit(self) -> Awaitable[None] | None:
        """Admit a call: returns None if it may run at once, otherwise an awaitable that must end before.

        Raises Refused, also from the awaitable, if calls cannot be recorded and must not run without a record.
        """
        if not self._closed:
            return None
        for sink in self._sinks:
            if not sink.ready and not sink.prepare():
                return self._readmit()
        return None

    def write(self, record: AuditRecord) -> Awaitable[None] | None:
        """Give a record to all sinks: returns None if it is stored, otherwise an awaitable that ends when it is.

        Raises ToolError, also from the awaitable, if it could not be stored and the call must fail because of that.
        """
        keeping: list[tuple[RetryingSink, Awaitable[None]]] | None = None
        kept = True
        for sink in self._sinks:
            if not sink.ready and not sink.prepare() and not sink.may_try():
                sink.lose()
                kept = False
                continue
            try:
                waiting = sink.resume(record) if sink.broken else sink.write(record)
            except Exception as error:
                sink.fail(error)
                kept = False
            else:
                if waiting is not None:
                    keeping = [*(keeping or ()), (sink, waiting)]
        if keeping is not None:
            return self._finish(keeping, kept, record)
        if not kept:
            self._complain(record)
        return None

    def write_at_once(self, record: AuditRecord) -> None:
        """Give a record to all sinks and block for a moment until it is stored; a failure is counted and logged."""
        self.flush()  # so that there is room
        for sink in self._sinks:
            if not sink.ready and not sink.prepare():
                sink.lose()
                continue
            try:
                waiting = sink.write(record)
            except Exception as error:
                sink.fail(error)
            else:
                if waiting is not None:
                    self._follow(sink, waiting)
        self.flush()

    def flush(self) -> None:
        """Block until all sinks have stored the records they took, or take too long."""
        for sink in self._sinks:
            sink.flush(min(self._timeout_seconds, _LONGEST_BLOCK_SECONDS))

    async def _readmit(self) -> None:
        """Try again what failed, and refuse the call if that is no use.

        Raises:
            Refused: if a sink keeps no records.
        """
        for sink in self._sinks:
            if not sink.ready and not (sink.may_try() and await self._keep(sink, sink.resume(None), lost=0)):
                raise self._refusal()

    async def _finish(
        self, keeping: Sequence[tuple[RetryingSink, Awaitable[None]]], kept: bool, record: AuditRecord
    ) -> None:
        """Wait for the sinks that need time; they go on if the call is stopped meanwhile."""
        following = [self._follow(sink, waiting) for sink, waiting in keeping]
        answers = [await asyncio.shield(one) for one in following]
        if not (kept and all(answers)):
            self._complain(record)

    def _follow(self, sink: RetryingSink, waiting: Awaitable[None]) -> asyncio.Task[bool]:
        task = asyncio.get_running_loop().create_task(self._keep(sink, waiting))
        self._following.add(task)
        task.add_done_callback(self._following.discard)
        return task

    async def _keep(self, sink: RetryingSink, waiting: Awaitable[None], *, lost: int = 1) -> bool:
        """Wait for a sink, and say whether it kept the record."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await waiting
        except Exception as error:
            sink.fail(error, lost=lost)
            return False
        return True

    def _complain(self, record: AuditRecord) -> None:
        """Let a call fail whose record was not kept, where that matters more than the call."""
        if not self._closed:
            return
        if record.event == "start":
            raise self._refusal()
        raise ToolError(
            "The call was carried out, but could not be recorded, so its result is withheld",
            meta={"reason": "audit_failed"},
        )

    def _refusal(self) -> Refused:
        return Refused(
            "The call was not carried out, because it could not be recorded; try again",
            meta={"reason": "audit_unavailable", "retryAfterMs": round(self._retry_seconds * 1000)},
        )
