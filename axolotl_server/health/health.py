"""What a server answers to the questions of probes."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from axolotl_core.health import IHealthCheck
from axolotl_server.health.findings import Finding, Report
from axolotl_server.health.lookout import Lookout
from axolotl_server.health.own import AuditCheck, OwnConditions

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost

__all__ = ["Health", "make_health"]


class Health:
    """Puts together what checks and the server itself have found; it never raises.

    A server that was told to stop looks at nothing any more: what is behind it may be closing.
    """

    def __init__(self, conditions: OwnConditions, checks: Sequence[IHealthCheck], cache_seconds: float) -> None:
        lookouts = [Lookout(check, cache_seconds) for check in checks]
        self._conditions = conditions
        self._readiness = [one for one in lookouts if one.check.affects == "readiness"]
        self._startup = {one.check.name: one for one in lookouts if one.check.affects == "startup"}
        self._passed: set[str] = set()

    def liveness(self) -> Report:
        """Say that the event loop turns: that there is an answer is the answer."""
        return Report()

    async def startup(self) -> Report:
        """Say whether the server has started; a check of that which was well once is not asked again."""
        if self._conditions.draining:
            return Report()
        findings = await _gathered([one for name, one in self._startup.items() if name not in self._passed])
        self._passed.update(found.name for found in findings if found.state != "failed")
        failed = {found.name: found for found in findings if found.state == "failed"}
        return Report(tuple(failed.get(name, Finding(name)) for name in self._startup))

    async def readiness(self) -> Report:
        """Say whether calls may come."""
        if self._conditions.draining:
            return Report((self._conditions.serving(),))
        startup, findings = await asyncio.gather(self.startup(), _gathered(self._readiness))
        return Report((*self._conditions.findings(), *startup.findings, *findings))

    async def everything(self) -> Report:
        """Say the same as readiness, and what the server is doing."""
        report = await self.readiness()
        phase = "serving" if len(self._passed) == len(self._startup) else "starting"
        return Report(report.findings, {"phase": "draining" if self._conditions.draining else phase})


def make_health(host: "ServerHost") -> Health:
    """Make the health of a server that has started."""
    conditions = OwnConditions(host.ending, host.handler.inflight, host.watchdog)
    own = () if host.audit is None else (AuditCheck(host.audit.trail),)
    return Health(conditions, (*own, *host.roles.health_checks), host.settings.health.cache_seconds)


async def _gathered(lookouts: Sequence[Lookout]) -> tuple[Finding, ...]:
    """Look at everything at once."""
    return tuple(await asyncio.gather(*(one.finding() for one in lookouts)))
