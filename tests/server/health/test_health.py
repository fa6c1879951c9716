"""Health probes."""

import asyncio
import json
import threading
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import ConfigurationError, tool
from axolotl_core.health import HealthStatus, IHealthCheck
from axolotl_core.policies.audit import AuditRecord, IAuditSink
from axolotl_server import ServerHost
from tests.support.servers.probed_server import Found, Held, probed
from tests.support.servers.server_process import answer_to
from tests.support.servers.serving import until
from tests.support.tools import Echo, Probe, container_of

OWN = {"serving": "ok", "calls": "ok", "event_loop": "ok"}


async def test_a_server_that_is_well() -> None:
    """All four routes return 200 for any client and host, and must not be cached."""
    async with probed(Found("database")) as server:
        for path, said in {
            "/livez": {"status": "ok", "checks": {}},
            "/startupz": {"status": "ok", "checks": {}},
            "/readyz": {"status": "ok", "checks": {name: {"status": "ok"} for name in (*OWN, "database")}},
            "/health": {
                "status": "ok",
                "phase": "serving",
                "checks": {name: {"status": "ok"} for name in (*OWN, "database")},
            },
        }.items():
            reply = await server.ask(path)
            assert (reply.status, json.loads(reply.body)) == (200, said)
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["content-type"] == "application/json"


async def test_methods() -> None:
    """HEAD is supported, other methods are not."""
    async with probed() as server:
        async with asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"HEAD /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            writer.close()
        assert head.startswith(b"HTTP/1.1 200 ")
        assert body == b""
        reply = await server.ask(method="POST")
        assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


async def test_a_check_that_fails() -> None:
    """A failed check makes a server unready, but not dead or unstarted; the reason is hidden by default."""
    failing = Found("database", HealthStatus.failed("no connection"))
    async with probed(failing, Found("cache")) as server:
        status, said = await server.told()
        assert (status, said["status"]) == (503, "failed")
        assert said["checks"] == {name: {"status": "ok"} for name in (*OWN, "cache")} | {
            "database": {"status": "failed"}
        }
        assert (await server.told("/health"))[0] == 503
        assert (await server.told("/livez"))[0] == 200
        assert (await server.told("/startupz"))[0] == 200
        failing.found = None
        assert (await server.told())[0] == 200


async def test_a_check_that_is_degraded() -> None:
    """A degraded check is reported, and the server stays ready."""
    async with probed(Found("cache", HealthStatus.degraded("slow"))) as server:
        status, said = await server.told()
        assert (status, said["status"]) == (200, "degraded")


async def test_details() -> None:
    """Reasons and durations are shown if configured."""
    degraded = Found("cache", HealthStatus.degraded("slow" * 100))
    async with probed(degraded, settings={"health": {"details": True}}) as server:
        _, said = await server.told()
    found = said["checks"]["cache"]
    assert (found["status"], found["reason"]) == ("degraded", "slow" * 50)
    assert found["seconds"] >= 0


@pytest.mark.parametrize("error", [OSError("postgres://ada:secret@db"), SystemExit(3), asyncio.CancelledError()])
async def test_a_check_that_raises(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """An exception means that a check failed; the probe shows its type, the log the details."""
    async with probed(Found("database", error), settings={"health": {"details": True}}) as server:
        reply = await server.ask()
        assert json.loads(reply.body)["checks"]["database"]["reason"] == type(error).__name__
        assert b"secret" not in reply.body
    assert "health check database is failed" in caplog.text


async def test_a_check_that_returns_no_status() -> None:
    """A check that returns something else than a status has failed."""
    async with probed(Found("database", True), settings={"health": {"details": True}}) as server:
        _, said = await server.told()
    assert said["checks"]["database"]["status"] == "failed"
    assert said["checks"]["database"]["reason"] == "the check returned bool; return a HealthStatus or None"


async def test_a_check_has_its_own_timeout() -> None:
    """A check that times out has failed, and is not started again until it has ended."""

    class Endless(Found):
        timeout_seconds = 0.02

        async def check(self) -> HealthStatus | None:
            self.looks += 1
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return None

    release, endless = asyncio.Event(), Endless("endless")
    async with probed(endless, settings={"health": {"details": True}}) as server:
        _, said = await server.told()
        assert said["checks"]["endless"]["reason"] == "no answer within 0.02 seconds"
        _, said = await server.told()
        assert said["checks"]["endless"]["reason"] == "an earlier run of the check has not ended"
        assert endless.looks == 1
        release.set()
        assert (await server.told())[0] == 200


async def test_checks_run_at_once() -> None:
    """Checks run concurrently."""
    first, second = Held("first"), Held("second")
    async with probed(first, second) as server:
        asking = asyncio.ensure_future(server.told())
        await first.begun.wait()
        await second.begun.wait()
        second.release.set()
        first.release.set()
        assert (await asking)[0] == 200


async def test_many_probes_look_once() -> None:
    """Concurrent probes share one run of the checks, whose result is cached briefly."""
    held = Held()
    async with probed(held, cache_seconds=60) as server:
        asking = [asyncio.ensure_future(server.told()) for _ in range(30)]
        await held.begun.wait()
        held.release.set()
        assert {status for status, _ in await asyncio.gather(*asking)} == {200}
        held.found = HealthStatus.failed("too late to be seen")
        assert (await server.told("/health"))[0] == 200
    assert held.looks == 1


async def test_a_probe_that_gives_up_does_not_end_the_look() -> None:
    """If a probe disconnects, the next one gets the result of its run."""
    held = Held()
    async with probed(held) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        await held.begun.wait()
        writer.close()
        asking = asyncio.ensure_future(server.told())
        held.release.set()
        assert (await asking)[0] == 200
        assert await reader.read() is not None


async def test_startup() -> None:
    """A server has started when each startup check has passed once; until then it is not ready."""
    loading = Found("model", HealthStatus.failed("loading"), affects="startup")
    async with probed(loading) as server:
        assert await server.told("/startupz") == (503, {"status": "failed", "checks": {"model": {"status": "failed"}}})
        assert (await server.told())[0] == 503
        assert (await server.told("/health"))[1]["phase"] == "starting"
        assert (await server.told("/livez"))[0] == 200
        loading.found = None
        assert (await server.told("/startupz"))[0] == 200
        loading.found, looks = HealthStatus.failed("forgotten"), loading.looks
        assert (await server.told())[0] == 200
        assert (await server.told("/health"))[1]["phase"] == "serving"
        assert loading.looks == looks


async def test_a_server_that_drains() -> None:
    """During a shutdown a server is alive but not ready, and runs no more checks."""
    probe, database = Probe(), Found("database")
    async with probed(database, tools=[probe]) as server:
        running = asyncio.ensure_future(answer_to(server.port, "probe"))
        await probe.started.wait()
        server.host.stop_signal.set()
        assert await server.told() == (503, {"status": "failed", "checks": {"serving": {"status": "failed"}}})
        assert (await server.told("/health"))[1]["phase"] == "draining"
        assert (await server.told("/startupz"))[0] == 200
        assert (await server.told("/livez"))[0] == 200
        assert database.looks == 0
        probe.release.set()
        assert (await running)["content"][0]["text"] == "done"


async def test_a_server_without_a_place() -> None:
    """A server at its limit of calls reports that."""
    probe = Probe()
    async with probed(tools=[probe], settings={"limits": {"max_inflight": 1}}) as server:
        running = asyncio.ensure_future(answer_to(server.port, "probe"))
        await probe.started.wait()
        assert (await server.checks())["calls"] == "failed"
        probe.release.set()
        await running
        assert (await server.checks())["calls"] == "ok"


class BrokenSink(IAuditSink):
    """A sink that fails on request."""

    def __init__(self) -> None:
        self.broken = False

    def write(self, record: AuditRecord) -> None:
        if self.broken:
            raise OSError("the disk is full")


@pytest.mark.parametrize(("on_failure", "status", "state"), [("closed", 503, "failed"), ("open", 200, "degraded")])
async def test_an_audit_that_fails(on_failure: str, status: int, state: str) -> None:
    """If the audit fails, a server is unready or degraded, depending on the policy."""
    sink = BrokenSink()
    settings = {"audit": {"on_failure": on_failure}}
    async with probed(settings=settings, audit_sinks=[sink]) as server:
        assert (await server.checks())["audit"] == "ok"
        sink.broken = True
        await answer_to(server.port, "echo", {"text": "x"})
        assert (await server.told())[0] == status
        assert (await server.checks())["audit"] == state


async def test_an_audit_recovers_without_calls() -> None:
    """An unready server without calls retries its audit, and becomes ready when it works."""
    sink = BrokenSink()
    async with probed(audit_sinks=[sink]) as server:
        assert server.host.assembly.audit is not None
        sink.broken = True
        await answer_to(server.port, "echo", {"text": "x"})
        assert (await server.told())[0] == 503
        sink.broken = False
        for guarded in server.host.assembly.audit.trail._sinks:
            guarded._retry_at = 0.0  # the second has passed
        assert (await server.told())[0] == 200


async def test_a_loop_that_stood_still() -> None:
    """A blocked event loop makes a server degraded for a while."""

    @tool
    async def block() -> None:
        threading.Event().wait(0.3)

    async with probed(tools=[block], stall_seconds=0.05) as server:
        assert (await server.checks())["event_loop"] == "ok"
        await answer_to(server.port, "block")
        watchdog = server.host.watchdog
        assert watchdog is not None
        await until(lambda: watchdog.stalls)
        status, said = await server.told()
        assert (status, said["checks"]["event_loop"]) == (200, {"status": "degraded"})


async def test_blocked_threads_do_not_kill() -> None:
    """A server whose threads are all busy is alive."""
    release, began = threading.Event(), threading.Barrier(3)

    @tool
    def block() -> None:
        began.wait(20)
        release.wait(20)

    async with probed(tools=[block], settings={"limits": {"threads": 2}}) as server:
        running = [asyncio.ensure_future(answer_to(server.port, "block")) for _ in range(2)]
        await asyncio.to_thread(began.wait, 20)
        assert (await server.told("/livez"))[0] == 200
        release.set()
        await asyncio.gather(*running)


async def test_they_can_be_turned_off() -> None:
    """A server without health endpoints has no routes for them."""
    async with probed(settings={"health": {"enabled": False}}) as server:
        assert (await server.ask("/livez", name="localhost")).status == 404


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        ({"http": {"path": "/health"}}, "http: /health is a path of the health endpoints"),
        ({"http": {"sse_path": "/livez"}}, "http: /livez is a path of the health endpoints"),
    ],
)
async def test_wrong_settings(settings: Any, finding: str) -> None:
    """Invalid paths are rejected at the start."""
    with pytest.raises(ConfigurationError, match=finding):
        async with ServerHost(container_of(Echo()), flags=settings):
            pass


class Nameless(IHealthCheck):
    async def check(self) -> HealthStatus | None:
        return None


@pytest.mark.parametrize(
    ("checks", "finding"),
    [
        ([Nameless], "The role health_checks contains the class Nameless; use an instance"),
        ([object()], "The role health_checks contains object, which is not an IHealthCheck"),
        ([Nameless()], "Nameless has the name None; use up to 64 letters"),
        ([Found("a b")], "Found has the name 'a b'; use up to 64 letters"),
        ([Found("audit")], "Found has the name 'audit', which a built-in check has"),
        ([Found("a"), Found("a")], "Two health checks have the same name: 'a'"),
        ([Found("a", timeout_seconds=0)], "Found has timeout_seconds 0; use a number above 0"),
        ([Found("a", timeout_seconds=True)], "Found has timeout_seconds True"),
        ([Found("a", affects="liveness")], "Found has affects 'liveness'; use 'readiness' or 'startup'"),
    ],
)
async def test_wrong_checks(checks: list[Any], finding: str) -> None:
    """Invalid checks are reported at the start."""
    container = container_of(Echo())
    container.health_checks = providers.Object(checks)
    with pytest.raises(ConfigurationError) as caught:
        async with ServerHost(container):
            pass
    assert finding in str(caught.value)


async def test_findings_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Only changes of the status are logged."""
    caplog.set_level("INFO", "axolotl")
    database = Found("database", HealthStatus.failed("gone"))
    async with probed(database) as server:
        for _ in range(3):
            await server.told()
        database.found = None
        for _ in range(3):
            await server.told()
    assert [record.message for record in caplog.records if "health check" in record.message] == [
        "health check database is failed: gone",
        "health check database is ok again",
    ]
