"""How a server finds out whether what it stands on is well."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, Literal, TypeAlias, get_args

from axolotl_core.errors import ConfigurationError

HealthState: TypeAlias = Literal["ok", "degraded", "failed"]
"""Well; well enough to go on; not well enough to take calls."""

HealthAspect: TypeAlias = Literal["readiness", "startup"]
"""Whether a check decides again and again if calls may come, or once if the server has started.

There is none for liveness: a restart cures nothing that is wrong elsewhere.
"""

OWN_CHECKS: Final = frozenset({"audit", "calls", "event_loop", "serving"})
"""The names of what a server looks at itself."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class HealthStatus:
    """What a check has found."""

    state: HealthState = "ok"
    reason: str | None = None
    """Why it is not well, in words that anybody may read who may ask: no addresses, no names of users, no secrets."""

    @classmethod
    def degraded(cls, reason: str) -> "HealthStatus":
        """Say that something is wrong, but calls may come."""
        return cls("degraded", reason)

    @classmethod
    def failed(cls, reason: str) -> "HealthStatus":
        """Say that no calls should come."""
        return cls("failed", reason)


class IHealthCheck(ABC):
    """Looks at one thing that the server needs, such as a database or a model that has to be loaded.

    One check never runs twice at once, and what it found is kept for `health.cache_seconds`: however often a server is
    probed, what is behind it is not.
    """

    name: str
    """What probes call it: up to 64 letters, digits, dots, dashes and underscores."""
    timeout_seconds: float = 2.0
    """How long it may take before it counts as failed; less than the timeout of the probe."""
    affects: HealthAspect = "readiness"

    @abstractmethod
    async def check(self) -> HealthStatus | None:
        """Look, on the event loop, and say what was found; None stands for well.

        Whatever it raises means that the thing failed: the log has the error, a probe hears its type at most.
        """


def check_health_checks(checks: Sequence[Any]) -> None:
    """Look at what the role `health_checks` holds before anything is served.

    Raises:
        ConfigurationError: with everything that is wrong.
    """
    findings = [finding for check in checks for finding in _faults_of(check)]
    names = [getattr(check, "name", None) for check in checks if isinstance(check, IHealthCheck)]
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    findings += [f"Two health checks have the same name: {name!r}" for name in twice]
    if findings:
        raise ConfigurationError(*findings)


def _faults_of(check: Any) -> Iterator[str]:
    if isinstance(check, type) and issubclass(check, IHealthCheck):
        yield f"The role health_checks holds the class {check.__name__}: give it an instance"
        return
    if not isinstance(check, IHealthCheck):
        yield f"The role health_checks holds {type(check).__name__}, which is no IHealthCheck"
        return
    kind, name = type(check).__name__, getattr(check, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"{kind} has the name {name!r}: use up to 64 letters, digits, dots, dashes and underscores"
    elif name in OWN_CHECKS:
        yield f"{kind} has the name {name!r}, which is one of the server's own checks: choose another"
    if not _is_duration(check.timeout_seconds):
        yield f"{kind} has the timeout_seconds {check.timeout_seconds!r}: use a number above 0"
    if check.affects not in get_args(HealthAspect):
        yield f"{kind} affects {check.affects!r}: use 'readiness' or 'startup'"


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value > 0
