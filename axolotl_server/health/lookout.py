"""One check of something that takes time to look at."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Final, get_args

from axolotl_core.health import HealthState, HealthStatus, IHealthCheck
from axolotl_server.health.findings import Finding

__all__ = ["Lookout"]

_log: Final = logging.getLogger("axolotl")


class Lookout:
    """Looks at most once at a time, and not again while what it found is fresh; who asks meanwhile shares the answer.

    Nobody waits for longer than the check may take. One that goes on after that is not started again until it ends.
    """

    def __init__(self, check: IHealthCheck, cache_seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self.check = check
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._finding: Finding | None = None
        self._found_at = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._overdue: asyncio.Task[HealthStatus] | None = None

    async def finding(self) -> Finding:
        """Say how it is."""
        found = self._finding
        if found is not None and self._clock() - self._found_at < self._cache_seconds:
            return found
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        await asyncio.wait((self._looking,))  # which goes on if this probe is given up
        assert self._finding is not None
        return self._finding

    async def _look(self) -> None:
        began = self._clock()
        try:
            status = await self._status()
            self._note(Finding(self.check.name, status.state, status.reason, self._clock() - began))
        finally:
            self._found_at = self._clock()
            self._looking = None

    async def _status(self) -> HealthStatus:
        if self._overdue is not None and not self._overdue.done():
            return HealthStatus.failed("an earlier look at it has not ended")
        looking = asyncio.get_running_loop().create_task(self._ask())
        done, _ = await asyncio.wait((looking,), timeout=self.check.timeout_seconds)
        if done:
            return looking.result()
        looking.cancel()
        self._overdue = looking
        return HealthStatus.failed(f"no answer within {self.check.timeout_seconds:g} seconds")

    async def _ask(self) -> HealthStatus:
        try:
            return _read(await self.check.check())
        except BaseException as error:
            if not isinstance(error, Exception):
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
            _log.warning("health check %s raised an error", self.check.name, exc_info=error)
            return HealthStatus.failed(type(error).__name__)

    def _note(self, finding: Finding) -> None:
        """Keep a finding, and log it if it is news."""
        before: HealthState = "ok" if self._finding is None else self._finding.state
        self._finding = finding
        if finding.state == before:
            return
        if finding.state == "ok":
            _log.info("health check %s is ok again", finding.name)
        else:
            _log.warning("health check %s is %s: %s", finding.name, finding.state, finding.reason)


def _read(status: object) -> HealthStatus:
    """Take what a check gave; what is no status is a fault of the check."""
    if status is None:
        return HealthStatus()
    if isinstance(status, HealthStatus) and status.state in get_args(HealthState):
        return status
    return HealthStatus.failed(f"the check gave {type(status).__name__}: give a HealthStatus or None")
