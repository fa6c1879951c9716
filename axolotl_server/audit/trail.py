"""The audit trail: all sinks of a server, and the rule for calls when a sink fails."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Final

from axolotl_core.errors import ConfigurationError, Refused, ToolError
from axolotl_core.policies.audit import AuditRecord, IAuditSink, timestamp
from axolotl_core.protocol.result_keys import own_meta
from axolotl_server.execution.outage_log import OutageLog
from axolotl_server.settings.policies import OnFailure

_log: Final = logging.getLogger("axolotl")


class RetryingSink:
    """A sink that is tried again some time after it failed."""

    def __init__(self, sink: IAuditSink, retry_seconds: float) -> None:
        self._sink = sink
        self._retry_seconds = retry_seconds
        self._opened = False
        self._retry_at = float("-inf")
        self._unreported = 0
        self._outages = OutageLog(str(self), "audit records lost", level=logging.ERROR)
        self.write = sink.write
        self.broken = False
        """Whether it failed and has not recovered."""
        self.lost = 0
        """How many records it did not store."""

    def ready(self) -> bool:
        """Whether it works; it is opened when it is first needed."""
        if not self.broken and not self._opened:
            try:
                self.open()
            except Exception as error:
                self.fail(error, lost=0)
        return not self.broken

    def open(self) -> None:
        """Open the sink if it is not open."""
        if not self._opened:
            self._sink.open()
            self._opened = True

    def flush(self, seconds: float) -> None:
        """Block until it has stored the records it took."""
        if self._opened and not self.broken and not self._sink.flush(seconds):
            self.fail(TimeoutError(f"no answer within {seconds:g} seconds"), lost=0)

    def may_try(self) -> bool:
        """Tell whether it is time to try a broken sink again; the caller must then do so."""
        now = monotonic()
        if now < self._retry_at:
            return False
        self._retry_at = now + self._retry_seconds
        return True

    def lose(self, records: int = 1) -> None:
        """Count records that were not stored."""
        self._unreported += records
        self.lost += records
        self._outages.count(records)

    def fail(self, error: BaseException, *, lost: int = 1) -> None:
        """Note a failure, and the records that were lost because of it."""
        self.lose(lost)
        self.broken = True
        self._retry_at = monotonic() + self._retry_seconds
        self._outages.failed(f"{type(error).__name__}: {error}", effects=0)

    async def resume(self, record: AuditRecord | None) -> None:
        """Try a broken sink: record how many records it lost, then store the current one, if any."""
        self.open()
        await self._record_losses()
        if record is not None:
            await _stored(self.write(record))
        await self._record_losses()
        self.broken = False
        self._outages.recovered()

    def close(self) -> None:
        """Close the sink if it is open; it takes no more records."""
        self.broken, self._retry_at = True, float("inf")
        if self._opened:
            self._opened = False
            self._sink.close()

    async def _record_losses(self) -> None:
        while self._unreported:
            lost = self._unreported
            await _stored(self.write(AuditRecord(time=timestamp(), event="gap", lost=lost)))
            self._unreported -= lost

    def __str__(self) -> str:
        sink = self._sink
        return type(sink).__name__ if type(sink).__str__ is object.__str__ else str(sink)


async def _stored(storing: Awaitable[None] | None) -> None:
    if storing is not None:
        await storing


_RETRY_SECONDS: Final = 1.0
_MAX_BLOCKING_SECONDS: Final = 1.0
"""How long the event loop may be blocked for the record of an abandoned call."""


class AuditTrail:
    """Gives every record to every sink.

    If a sink fails and `on_failure` is `closed`, calls are refused until it works again, and a call whose record was
    not stored ends with an error. If it is `open`, calls go on and lost records are counted. A failed sink is tried
    again every second; it first gets a record of how many it lost.
    """

    def __init__(
        self,
        sinks: Sequence[IAuditSink],
        on_failure: OnFailure,
        timeout_seconds: float,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        self._sinks = [RetryingSink(sink, retry_seconds) for sink in sinks]
        self._fails_closed = on_failure == "closed"
        self._timeout_seconds = timeout_seconds
        self._retry_seconds = retry_seconds
        self._storing: set[asyncio.Task[Any]] = set()

    @property
    def broken(self) -> bool:
        """Whether a sink fails now."""
        return any(sink.broken for sink in self._sinks)

    @property
    def lost(self) -> int:
        """How many records were lost since the start, counted per sink."""
        return sum(sink.lost for sink in self._sinks)

    def open(self) -> None:
        """Open all sinks before the first call, which would open them otherwise; raises ConfigurationError."""
        for sink in self._sinks:
            try:
                sink.open()
            except OSError as error:
                raise ConfigurationError(f"The audit log cannot be opened: {_reason(error)}") from error

    def close(self) -> None:
        """Close all sinks."""
        for sink in self._sinks:
            try:
                sink.close()
            except Exception:
                _log.exception("%s could not be closed", sink)

    async def admit(self) -> None:
        """Admit a call; raises Refused if it could not be recorded, and must not run without a record."""
        if not self._fails_closed:
            return
        for sink in self._sinks:
            if not sink.ready() and not (sink.may_try() and await self._store(sink, sink.resume(None), lost=0)):
                raise self._refusal()

    async def write(self, record: AuditRecord) -> None:
        """Give a record to all sinks, and wait until it is stored; they go on if the call is cancelled meanwhile.

        Raises ToolError if it could not be stored, and the call must fail because of that.
        """
        stored = self.give(record)
        is_stored = all([one if isinstance(one, bool) else await asyncio.shield(one) for one in stored])
        if is_stored or not self._fails_closed:
            return
        if record.event == "start":
            raise self._refusal()
        raise ToolError(
            "The call was executed but could not be recorded, so its result is withheld",
            meta=own_meta(reason="audit_failed"),
        )

    def write_at_once(self, record: AuditRecord) -> None:
        """Give a record to all sinks and block for a moment until it is stored; a failure is counted and logged."""
        self.flush()  # so that there is room
        for sink in self._sinks:
            if sink.ready():
                self._give(sink, record)
            else:
                sink.lose()
        self.flush()

    def give(self, record: AuditRecord) -> list[bool | asyncio.Task[bool]]:
        """Give a record to all sinks; returns for each whether it stored it. A failure is counted and logged."""
        return [self._give(sink, record) for sink in self._sinks]

    def flush(self) -> None:
        """Block until all sinks have stored the records they took, or take too long."""
        for sink in self._sinks:
            sink.flush(min(self._timeout_seconds, _MAX_BLOCKING_SECONDS))

    def _give(self, sink: RetryingSink, record: AuditRecord) -> bool | asyncio.Task[bool]:
        ready = sink.ready()
        if not ready and not sink.may_try():
            sink.lose()
            return False
        try:
            storing = sink.write(record) if ready else sink.resume(record)
        except Exception as error:
            sink.fail(error)
            return False
        if storing is None:
            return True
        task = asyncio.get_running_loop().create_task(self._store(sink, storing))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)
        return task

    async def _store(self, sink: RetryingSink, storing: Awaitable[None], *, lost: int = 1) -> bool:
        """Wait for a sink; returns whether it stored the record."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await storing
        except Exception as error:
            sink.fail(error, lost=lost)
            return False
        return True

    def _refusal(self) -> Refused:
        return Refused(
            "The call was not executed, because it could not be recorded; try again",
            meta=own_meta(reason="audit_unavailable", retryAfterMs=round(self._retry_seconds * 1000)),
        )


def _reason(error: OSError) -> str:
    """Say why a file cannot be opened; the file that the system names may be a lock beside the log."""
    path = Path(error.filename) if isinstance(error.filename, str) else None
    if path is not None and not path.parent.is_dir():
        return f"the directory {path.parent} does not exist: create it, or change the path in section audit"
    return str(error)
