"""Health: checks, reports, and routes for probes, which need no token."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

import msgspec

from axolotl_core.errors import AxolotlError, Refused
from axolotl_core.health import HealthState, HealthStatus, IHealthCheck
from axolotl_core.protocol.wire import encode
from axolotl_server.execution.time_limit import CodeExited, NoAnswer, answer_within
from axolotl_server.http.asgi import JSON, HttpRefusal, Receive, Route, Scope, Send, ServeRoute
from axolotl_server.settings.transports import HEALTH_PATH, LIVE_PATH, READY_PATH, STARTUP_PATH, HealthSettings

if TYPE_CHECKING:
    from axolotl_server.audit.trail import AuditTrail
    from axolotl_server.host import ServerHost

_SEVERITY: Final[Mapping[HealthState, int]] = {"ok": 0, "degraded": 1, "failed": 2}
_REASON_CHARACTERS: Final = 200


class CheckResult(msgspec.Struct, frozen=True):
    """The result of one check."""

    name: str
    state: HealthState = "ok"
    reason: str | None = None
    seconds: float | None = None
    """How long the check took; None for built-in checks, which take no time."""

    def describe(self, details: bool) -> dict[str, Any]:
        """Describe the result, with reason and duration if details are wanted."""
        content: dict[str, Any] = {"status": self.state}
        if details and self.reason is not None:
            content["reason"] = self.reason[:_REASON_CHARACTERS]
        if details and self.seconds is not None:
            content["seconds"] = round(self.seconds, 4)
        return content


class HealthReport(msgspec.Struct, frozen=True):
    """The results of several checks."""

    results: tuple[CheckResult, ...] = ()
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Further members of the JSON body."""

    @property
    def state(self) -> HealthState:
        """The worst state of all results."""
        return max((one.state for one in self.results), key=_SEVERITY.__getitem__, default="ok")

    @property
    def status(self) -> int:
        """The HTTP status; `degraded` still counts as healthy."""
        return 503 if self.state == "failed" else 200

    def body(self, details: bool) -> bytes:
        """Encode the report as JSON."""
        checks = {one.name: one.describe(details) for one in self.results}
        return encode({"status": self.state, **self.details, "checks": checks})


_CACHE_SECONDS: Final = 1.0
"""How long the result of a check is cached."""
_log: Final = logging.getLogger("axolotl")


class CheckRunner:
    """Runs a check at most once at a time, and caches its result; probes that wait at the same time share it.

    Probes wait no longer than the check's timeout. A check that still runs then is not started again until it ends.
    """

    def __init__(self, check: IHealthCheck, cache_seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self.check = check
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._result: CheckResult | None = None
        self._checked_at = 0.0
        self._run_task: asyncio.Task[None] | None = None
        self._is_running = False

    async def result(self) -> CheckResult:
        """Return the cached result, or run the check."""
        cached = self._result
        if cached is not None and self._clock() - self._checked_at < self._cache_seconds:
            return cached
        if self._run_task is None:
            self._run_task = asyncio.get_running_loop().create_task(self._run())
        await asyncio.wait((self._run_task,))  # it goes on if this probe is cancelled
        assert self._result is not None
        return self._result

    async def _run(self) -> None:
        started, name = self._clock(), self.check.name
        before: HealthState = "ok" if self._result is None else self._result.state
        try:
            status = await self._status()
            self._result = CheckResult(name, status.state, status.reason, self._clock() - started)
        finally:
            self._checked_at = self._clock()
            self._run_task = None
        if status.state == "ok" != before:
            _log.info("health check %s is ok again", name)
        elif status.state != before:
            _log.warning("health check %s is %s: %s", name, status.state, status.reason)

    async def _status(self) -> HealthStatus:
        if self._is_running:
            return HealthStatus.failed("an earlier run of the check has not ended")
        try:
            return await answer_within(self.check.timeout_seconds, self._check)
        except NoAnswer as error:
            return HealthStatus.failed(str(error))
        except Exception as error:
            _log.warning("health check %s raised an error", self.check.name, exc_info=error)
            raised = error.__cause__ if isinstance(error, CodeExited) else error
            return HealthStatus.failed(type(raised).__name__)

    async def _check(self) -> HealthStatus:
        self._is_running = True
        try:
            status: object = await self.check.check()
        finally:
            self._is_running = False
        if status is None:
            return HealthStatus()
        if isinstance(status, HealthStatus) and status.state in get_args(HealthState):
            return status
        return HealthStatus.failed(f"the check returned {type(status).__name__}; return a HealthStatus or None")


_STALL_REMEMBERED_SECONDS: Final = 30.0
_STORE_SECONDS: Final = 0.25
"""How long a probe waits for a store."""


class AuditCheck(IHealthCheck):
    """Checks whether calls can be recorded, and tries failed sinks again, because there may be no call to do so."""

    name = "audit"

    def __init__(self, trail: "AuditTrail") -> None:
        self._trail = trail

    async def check(self) -> HealthStatus | None:
        try:
            await self._trail.admit()
        except Refused:
            return HealthStatus.failed("calls are refused because they cannot be recorded")
        return HealthStatus.degraded("calls are not recorded") if self._trail.broken else None


class StoreCheck(IHealthCheck):
    """Checks whether a store responds. Calls do without it as the settings say, so an outage is not a failure."""

    timeout_seconds = 2 * _STORE_SECONDS

    def __init__(self, name: str, ping: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self._ping = ping

    async def check(self) -> HealthStatus | None:
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                await self._ping()
        except TimeoutError:
            return HealthStatus.degraded("no answer in time")
        except Exception as error:
            return HealthStatus.degraded(str(error) if isinstance(error, AxolotlError) else type(error).__name__)
        return None


class OutageCheck(IHealthCheck):
    """Reports the outage of a store that cannot be tried without a call."""

    def __init__(self, name: str, problem: Callable[[], str | None]) -> None:
        self.name = name
        self._problem = problem

    async def check(self) -> HealthStatus | None:
        problem = self._problem()
        return None if problem is None else HealthStatus.degraded(problem)


def _store_checks(host: "ServerHost") -> Iterator[IHealthCheck]:
    """Make the checks of the stores that the server uses; those of sessions and tokens are added with their objects."""
    assembly, roles, redis = host.assembly, host.roles, host.assembly.redis
    if assembly.quota_store is not None:
        outages = getattr(assembly.quota_store, "outages", None)
        if roles.quota_store is not None and outages is not None:
            yield OutageCheck("quota_store", lambda: outages.recent_problem)
        elif redis is not None:
            yield StoreCheck("quota_store", redis.ping)
    if any(tool.idempotency is not None for tool in roles.tools):
        if roles.result_store is not None:
            yield OutageCheck("result_store", lambda: assembly.result_outages.recent_problem)
        elif redis is not None:
            yield StoreCheck("result_store", redis.ping)
    for one in assembly.extensions:
        yield from one.health_checks()


_DRAINING: Final = CheckResult("serving", "failed", "the server is shutting down")


class Health:
    """Combines the checks of a started server's own state with those of its stores and its container; it never raises.

    When the server is shutting down, checks no longer run, because the resources they use may be closing.
    """

    def __init__(self, host: "ServerHost") -> None:
        self._stop_signal, self._calls, self._watchdog = host.stop_signal, host.handler.inflight, host.watchdog
        audit = () if host.assembly.audit is None else (AuditCheck(host.assembly.audit.trail),)
        checks = (*audit, *_store_checks(host), *host.roles.health_checks)
        runners = [CheckRunner(check, _CACHE_SECONDS) for check in checks]
        self._readiness = [one for one in runners if one.check.affects == "readiness"]
        self._startup = {one.check.name: one for one in runners if one.check.affects == "startup"}
        self._passed: set[str] = set()

    def add(self, check: IHealthCheck) -> None:
        """Add a check of something that is made after this."""
        self._readiness.append(CheckRunner(check, _CACHE_SECONDS))

    async def liveness(self) -> HealthReport:
        """Report nothing: an answer is enough to show that the event loop runs."""
        return HealthReport()

    async def startup(self) -> HealthReport:
        """Report whether the server has started; a check that passed once is not run again."""
        if self._stop_signal.requested:
            return HealthReport()
        results = await _run_all([one for name, one in self._startup.items() if name not in self._passed])
        self._passed.update(result.name for result in results if result.state != "failed")
        failed = {result.name: result for result in results if result.state == "failed"}
        return HealthReport(tuple(failed.get(name, CheckResult(name)) for name in self._startup))

    async def readiness(self) -> HealthReport:
        """Report whether the server is ready for calls."""
        if self._stop_signal.requested:
            return HealthReport((_DRAINING,))
        startup, results = await asyncio.gather(self.startup(), _run_all(self._readiness))
        return HealthReport((*self._own_state(), *startup.results, *results))

    async def everything(self) -> HealthReport:
        """Report the same as readiness, and the phase of the server."""
        report = await self.readiness()
        phase = "serving" if len(self._passed) == len(self._startup) else "starting"
        return HealthReport(report.results, {"phase": "draining" if self._stop_signal.requested else phase})

    def _own_state(self) -> Iterator[CheckResult]:
        """Check what takes no time. A loop that is blocked now answers no probe, so its recent past counts."""
        yield _DRAINING if self._stop_signal.requested else CheckResult("serving")
        full = len(self._calls) >= self._calls.free_capacity
        yield CheckResult("calls", "failed", "the limit of running calls is reached") if full else CheckResult("calls")
        if self._watchdog is None:
            return
        noticed_at = self._watchdog.noticed_at
        if noticed_at is None or monotonic() - noticed_at > _STALL_REMEMBERED_SECONDS:
            yield CheckResult("event_loop")
        else:
            reason = f"it was blocked in the last {_STALL_REMEMBERED_SECONDS:g} seconds; see the log"
            yield CheckResult("event_loop", "degraded", reason)


async def _run_all(runners: Sequence[CheckRunner]) -> tuple[CheckResult, ...]:
    return tuple(await asyncio.gather(*(runner.result() for runner in runners)))


_MakeReport: TypeAlias = Callable[[], Awaitable[HealthReport]]

_NO_STORE: Final = (b"cache-control", b"no-store")
_ALLOW: Final = (b"allow", b"GET, HEAD")


def health_routes(health: Health, settings: HealthSettings) -> dict[str, Route]:
    """Make the routes by their paths."""

    reports: dict[str, _MakeReport] = {
        LIVE_PATH: health.liveness,
        READY_PATH: health.readiness,
        STARTUP_PATH: health.startup,
        HEALTH_PATH: health.everything,
    }
    return {path: Route(_serving(make_report, settings.details), is_open=True) for path, make_report in reports.items()}


def _serving(make_report: _MakeReport, details: bool) -> ServeRoute:
    async def serve(scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise HttpRefusal(405, "Method not allowed: use GET", headers=[_ALLOW])
        report = await make_report()
        body = report.body(details)
        response_headers = [JSON, _NO_STORE, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": report.status, "headers": response_headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    return serve
