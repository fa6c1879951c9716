"""The routes that probes ask: open to everybody, because probes know neither a name nor a token."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from axolotl_core.errors import Refused
from axolotl_core.health import HealthState, HealthStatus, IHealthCheck
from axolotl_core.protocol.wire import encode
from axolotl_server.asgi.http import JSON, HttpRefusal, Receive, Route, Scope, Send, ServeRoute
from axolotl_server.audit.trail import AuditTrail
from axolotl_server.calls.feature_method import InFlight
from axolotl_server.host import ServerHost
from axolotl_server.lifecycle.stop_signal import StopSignal
from axolotl_server.lifecycle.time_limit import CodeExited, NoAnswer, answer_within
from axolotl_server.lifecycle.watchdog import Watchdog

if TYPE_CHECKING:
    from axolotl_server.host import ServerHost

_SEVERITY: Final[Mapping[HealthState, int]] = {"ok": 0, "degraded": 1, "failed": 2}
_REASON_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one thing is."""

    name: str
    state: HealthState = "ok"
    reason: str | None = None
    seconds: float | None = None
    """How long it took to find out, where that takes time."""

    def described(self, details: bool) -> dict[str, Any]:
        """Describe it, with the reason where that may be read."""
        content: dict[str, Any] = {"status": self.state}
        if details and self.reason is not None:
            content["reason"] = self.reason[:_REASON_CHARACTERS]
        if details and self.seconds is not None:
            content["seconds"] = round(self.seconds, 4)
        return content


@dataclass(frozen=True, slots=True)
class HealthReport:
    """All that was found for one question."""

    findings: tuple[CheckResult, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What is told besides."""

    @classmethod
    def of(cls, findings: Iterable[CheckResult]) -> "HealthReport":
        """Put findings together."""
        return cls(tuple(findings))

    @property
    def state(self) -> HealthState:
        """The worst of all."""
        return max((one.state for one in self.findings), key=_SEVERITY.__getitem__, default="ok")

    @property
    def status(self) -> int:
        """The HTTP status: what is degraded is good enough."""
        return 503 if self.state == "failed" else 200

    def body(self, details: bool) -> bytes:
        """Write it as JSON."""
        checks = {one.name: one.described(details) for one in self.findings}
        return encode({"status": self.state, **self.facts, "checks": checks})


_log: Final = logging.getLogger("axolotl")


class CheckRunner:
    """Looks at most once at a time, and not again while what it found is fresh; who asks meanwhile shares the answer.

    Nobody waits for longer than the check may take. One that goes on after that is not started again until it ends.
    """

    def __init__(self, check: IHealthCheck, cache_seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self.check = check
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._finding: CheckResult | None = None
        self._found_at = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._is_running = False

    async def finding(self) -> CheckResult:
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
            self._note(CheckResult(self.check.name, status.state, status.reason, self._clock() - began))
        finally:
            self._found_at = self._clock()
            self._looking = None

    async def _status(self) -> HealthStatus:
        if self._is_running:
            return HealthStatus.failed("an earlier look at it has not ended")
        try:
            return await answer_within(self.check.timeout_seconds, self._run)
        except NoAnswer as error:
            return HealthStatus.failed(str(error))
        except Exception as error:
            _log.warning("health check %s raised an error", self.check.name, exc_info=error)
            raised = error.__cause__ if isinstance(error, CodeExited) else error
            return HealthStatus.failed(type(raised).__name__)

    async def _run(self) -> HealthStatus:
        self._is_running = True
        try:
            return _read(await self.check.check())
        finally:
            self._is_running = False

    def _note(self, finding: CheckResult) -> None:
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


class BuiltinChecks:
    """What can be told at once."""

    def __init__(self, ending: StopSignal, calls: InFlight, watchdog: Watchdog | None) -> None:
        self._ending = ending
        self._calls = calls
        self._watchdog = watchdog

    @property
    def draining(self) -> bool:
        """Whether the server was told to stop."""
        return self._ending.wanted

    def serving(self) -> CheckResult:
        """Say whether the server was told to stop."""
        return (
            CheckResult("serving", "failed", "the server is shutting down") if self.draining else CheckResult("serving")
        )

    def findings(self) -> Iterator[CheckResult]:
        """Look at everything."""
        yield self.serving()
        full = len(self._calls) >= self._calls.limit
        yield CheckResult("calls", "failed", "no place for another call") if full else CheckResult("calls")
        if self._watchdog is not None:
            yield self._event_loop(self._watchdog)

    def _event_loop(self, watchdog: Watchdog) -> CheckResult:
        """Look back: a loop that stands still now answers nobody."""
        noticed = watchdog.noticed
        if noticed is None or monotonic() - noticed > _STALL_REMEMBERED_SECONDS:
            return CheckResult("event_loop")
        reason = f"it stood still in the last {_STALL_REMEMBERED_SECONDS:g} seconds; the log says where"
        return CheckResult("event_loop", "degraded", reason)


class Health:
    """Puts together what checks and the server itself have found; it never raises.

    A server that was told to stop looks at nothing any more: what is behind it may be closing.
    """

    def __init__(self, conditions: BuiltinChecks, checks: Sequence[IHealthCheck], cache_seconds: float) -> None:
        lookouts = [CheckRunner(check, cache_seconds) for check in checks]
        self._conditions = conditions
        self._readiness = [one for one in lookouts if one.check.affects == "readiness"]
        self._startup = {one.check.name: one for one in lookouts if one.check.affects == "startup"}
        self._passed: set[str] = set()

    def liveness(self) -> HealthReport:
        """Say that the event loop turns: that there is an answer is the answer."""
        return HealthReport()

    async def startup(self) -> HealthReport:
        """Say whether the server has started; a check of that which was well once is not asked again."""
        if self._conditions.draining:
            return HealthReport()
        findings = await _gathered([one for name, one in self._startup.items() if name not in self._passed])
        self._passed.update(found.name for found in findings if found.state != "failed")
        failed = {found.name: found for found in findings if found.state == "failed"}
        return HealthReport(tuple(failed.get(name, CheckResult(name)) for name in self._startup))

    async def readiness(self) -> HealthReport:
        """Say whether calls may come."""
        if self._conditions.draining:
            return HealthReport((self._conditions.serving(),))
        startup, findings = await asyncio.gather(self.startup(), _gathered(self._readiness))
        return HealthReport((*self._conditions.findings(), *startup.findings, *findings))

    async def everything(self) -> HealthReport:
        """Say the same as readiness, and what the server is doing."""
        report = await self.readiness()
        phase = "serving" if len(self._passed) == len(self._startup) else "starting"
        return HealthReport(report.findings, {"phase": "draining" if self._conditions.draining else phase})


def make_health(host: "ServerHost") -> Health:
    """Make the health of a server that has started."""
    conditions = BuiltinChecks(host.ending, host.handler.inflight, host.watchdog)
    own = () if host.audit is None else (AuditCheck(host.audit.trail),)
    return Health(conditions, (*own, *host.roles.health_checks), host.settings.health.cache_seconds)


async def _gathered(lookouts: Sequence[CheckRunner]) -> tuple[CheckResult, ...]:
    """Look at everything at once."""
    return tuple(await asyncio.gather(*(one.finding() for one in lookouts)))


_Question: TypeAlias = Callable[[], Awaitable[HealthReport]]

_NO_STORE: Final = (b"cache-control", b"no-store")
_ALLOW: Final = (b"allow", b"GET, HEAD")


def health_routes(host: ServerHost) -> dict[str, Route]:
    """Make the routes that the settings ask for, by their paths."""
    settings = host.settings.health
    health = make_health(host)

    async def liveness() -> HealthReport:
        return health.liveness()

    questions: dict[str, _Question] = {
        settings.live_path: liveness,
        settings.ready_path: health.readiness,
        settings.startup_path: health.startup,
        settings.path: health.everything,
    }
    return {
        path: Route(_serving(question, settings.details), is_open=True) for path, question in questions.items() if path
    }


def _serving(question: _Question, details: bool) -> ServeRoute:
    async def serve(scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise HttpRefusal(405, "Method not allowed: use GET", headers=[_ALLOW])
        report = await question()
        body = report.body(details)
        about = [JSON, _NO_STORE, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": report.status, "headers": about})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    return serve
