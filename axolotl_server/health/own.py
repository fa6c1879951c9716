"""What a server looks at itself."""

from collections.abc import Iterator, Sized
from time import monotonic
from typing import Final, Protocol

from axolotl_core.errors import Refused
from axolotl_core.health import HealthStatus, IHealthCheck
from axolotl_server.audit.trail import AuditTrail
from axolotl_server.health.findings import Finding
from axolotl_server.shutdown import StopSignal
from axolotl_server.watchdog import Watchdog

__all__ = ["AuditCheck", "ILimited", "OwnConditions"]

_STALL_REMEMBERED_SECONDS: Final = 30.0


class AuditCheck(IHealthCheck):
    """Whether calls can be recorded; a sink that failed is tried again, because calls may not come to do that."""

    name = "audit"

    def __init__(self, trail: AuditTrail) -> None:
        self._trail = trail

    async def check(self) -> HealthStatus | None:
        """Try what failed, and tell what still does."""
        try:
            waiting = self._trail.admit()
            if waiting is not None:
                await waiting
        except Refused:
            return HealthStatus.failed("calls are refused, because they cannot be recorded")
        return HealthStatus.degraded("calls are not recorded") if self._trail.broken else None


class ILimited(Sized, Protocol):
    """Running calls, of which there may be so many."""

    limit: int


class OwnConditions:
    """What can be told at once."""

    def __init__(self, ending: StopSignal, calls: ILimited, watchdog: Watchdog | None) -> None:
        self._ending = ending
        self._calls = calls
        self._watchdog = watchdog

    @property
    def draining(self) -> bool:
        """Whether the server was told to stop."""
        return self._ending.wanted

    def serving(self) -> Finding:
        """Say whether the server was told to stop."""
        return Finding("serving", "failed", "the server is shutting down") if self.draining else Finding("serving")

    def findings(self) -> Iterator[Finding]:
        """Look at everything."""
        yield self.serving()
        full = len(self._calls) >= self._calls.limit
        yield Finding("calls", "failed", "no place for another call") if full else Finding("calls")
        if self._watchdog is not None:
            yield self._event_loop(self._watchdog)

    def _event_loop(self, watchdog: Watchdog) -> Finding:
        """Look back: a loop that stands still now answers nobody."""
        noticed = watchdog.noticed
        if noticed is None or monotonic() - noticed > _STALL_REMEMBERED_SECONDS:
            return Finding("event_loop")
        reason = f"it stood still in the last {_STALL_REMEMBERED_SECONDS:g} seconds; the log says where"
        return Finding("event_loop", "degraded", reason)
