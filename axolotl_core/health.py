"""`IHealthCheck` and `HealthStatus`: health checks of the things that a server depends on."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from axolotl_core.errors import ConfigurationError

HealthState: TypeAlias = Literal["ok", "degraded", "failed"]
"""Healthy; impaired, but able to serve calls; unable to serve calls."""

HealthAspect: TypeAlias = Literal["readiness", "startup"]
"""Whether a check affects readiness, again and again, or startup, once.

There is no aspect for liveness, because a restart does not repair a dependency.
"""

_STORES: Final = {"issuer_keys", "quota_store", "result_store", "session_store", "token_verifier"}

BUILTIN_CHECKS: Final = frozenset({"audit", "calls", "event_loop", "serving", *_STORES})
"""The names of the built-in checks."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class HealthStatus(msgspec.Struct, frozen=True):
    """The result of a health check."""

    state: HealthState = "ok"
    reason: str | None = None
    """Why it is not healthy. Everybody who may probe the server can read it: no addresses, user names or secrets."""

    @classmethod
    def degraded(cls, reason: str) -> "HealthStatus":
        """Report a problem that does not prevent calls."""
        return cls("degraded", reason)

    @classmethod
    def failed(cls, reason: str) -> "HealthStatus":
        """Report a problem that prevents calls."""
        return cls("failed", reason)


class IHealthCheck(ABC):
    """Checks one dependency of the server, such as a database or a model that must be loaded.

    A check never runs twice at the same time, and its result is cached for a second. So frequent probes
    do not put load on the dependency.
    """

    name: str
    """The name that probes show: up to 64 letters, digits, dots, dashes and underscores."""
    timeout_seconds: float = 2.0
    """After this time, the check has failed. Use less than the timeout of the probe."""
    affects: HealthAspect = "readiness"

    @abstractmethod
    async def check(self) -> HealthStatus | None:
        """Run the check on the event loop; None means healthy.

        Any exception means that the check failed. It is logged; probes show its type at most.
        """


def check_health_checks(checks: Sequence[Any]) -> None:
    """Check the role `health_checks` before the server starts.

    Raises:
        ConfigurationError: with all problems that were found.
    """
    findings = [finding for check in checks for finding in _faults_of(check)]
    names = [getattr(check, "name", None) for check in checks if isinstance(check, IHealthCheck)]
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    findings += [f"Two health checks have the same name: {name!r}" for name in twice]
    if findings:
        raise ConfigurationError(*findings)


def _faults_of(check: Any) -> Iterator[str]:
    if isinstance(check, type) and issubclass(check, IHealthCheck):
        yield f"The role health_checks contains the class {check.__name__}; use an instance"
        return
    if not isinstance(check, IHealthCheck):
        yield f"The role health_checks contains {type(check).__name__}, which is not an IHealthCheck"
        return
    kind, name = type(check).__name__, getattr(check, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"{kind} has the name {name!r}; use up to 64 letters, digits, dots, dashes and underscores"
    elif name in BUILTIN_CHECKS:
        yield f"{kind} has the name {name!r}, which a built-in check has; choose another name"
    seconds: Any = check.timeout_seconds
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not isfinite(seconds) or seconds <= 0:
        yield f"{kind} has timeout_seconds {seconds!r}; use a number above 0"
    if check.affects not in get_args(HealthAspect):
        yield f"{kind} has affects {check.affects!r}; use 'readiness' or 'startup'"
