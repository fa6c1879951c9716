"""All sinks of a server, and what happens to calls when one of them fails."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Final

from axolotl_core.audit import AuditRecord, IAuditSink, IAuditTrail
from axolotl_core.errors import ConfigurationError, Refused, ToolError
from axolotl_server.audit.guard import GuardedSink
from axolotl_server.audit.settings import OnFailure

__all__ = ["AuditTrail"]

_RETRY_SECONDS: Final = 1.0
_LONGEST_BLOCK_SECONDS: Final = 1.0
"""How long everything may stand still for the record of a call that was abandoned."""

_log: Final = logging.getLogger("axolotl")


class AuditTrail(IAuditTrail):
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
        self._sinks = [GuardedSink(sink, retry_seconds) for sink in sinks]
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
        """Let a call in, unless it could not be recorded."""
        if not self._closed:
            return None
        for sink in self._sinks:
            if not sink.ready and not sink.prepare():
                return self._readmit()
        return None

    def write(self, record: AuditRecord) -> Awaitable[None] | None:
        """Give a record to all sinks."""
        keeping: list[tuple[GuardedSink, Awaitable[None]]] | None = None
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
        """Give a record to all sinks and block until they have kept it, though not for long."""
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
        """Block until all sinks have kept what they took."""
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
        self, keeping: Sequence[tuple[GuardedSink, Awaitable[None]]], kept: bool, record: AuditRecord
    ) -> None:
        """Wait for the sinks that need time; they go on if the call is stopped meanwhile."""
        following = [self._follow(sink, waiting) for sink, waiting in keeping]
        answers = [await asyncio.shield(one) for one in following]
        if not (kept and all(answers)):
            self._complain(record)

    def _follow(self, sink: GuardedSink, waiting: Awaitable[None]) -> asyncio.Task[bool]:
        task = asyncio.get_running_loop().create_task(self._keep(sink, waiting))
        self._following.add(task)
        task.add_done_callback(self._following.discard)
        return task

    async def _keep(self, sink: GuardedSink, waiting: Awaitable[None], *, lost: int = 1) -> bool:
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
