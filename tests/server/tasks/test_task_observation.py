"""Tasks in metrics, in traces and in readiness."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel

from axolotl_core import Context, Principal, tool
from axolotl_server import ServerHost
from axolotl_server.extensions.tasks import extension
from axolotl_server.extensions.tasks.engines.stored_engine import StoredTaskEngine
from axolotl_server.extensions.tasks.task_telemetry import TASK_METRICS
from axolotl_server.health import Health
from axolotl_server.observation.metrics import METRICS
from tests.support.peers.task_hosts import serve_tasks, service_of
from tests.support.peers.task_peers import DirectedPeer
from tests.support.servers.observed_server import Telemetry
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.servers.task_engines import KEY, change_store, store_of
from tests.support.tools import Echo, container_of

ADA = Principal("ada")
LABELS = ("tool", "status", "outcome")
TASKS = {"lease_seconds": 1.0}


@pytest.fixture(autouse=True)
def parks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks keep their slots only for a moment while they wait for an answer."""
    monkeypatch.setattr(extension, "HOLD_SECONDS", 0.05)


class Amount(BaseModel):
    amount: int


@tool(task_support="optional", task_restart="resume")
async def order(context: Context) -> str:
    """Order something."""
    amount = await context.ask(Amount, "How many?", key="amount")
    return f"ordered {amount.amount}"


@tool(task_support="optional")
def fail() -> str:
    """Fail."""
    raise RuntimeError("broken")


@asynccontextmanager
async def replica(url: str | None, *tools: Any, works: bool = True, **sections: Any) -> AsyncIterator[ServerHost]:
    """A server with metrics, on a store."""
    flags = {
        "tasks": TASKS if url is None else {"url": url, **TASKS},
        "protocol": {"state_keys": [KEY]},
        "metrics": {"enabled": True},
        **sections,
    }
    async with ServerHost(container_of(*tools), flags=flags) as host:
        await serve_tasks(host, works=works)
        yield host


async def scrape(host: ServerHost) -> dict[tuple[str, ...], float]:
    """Count as the engine does regularly, and read the metrics page: names of samples and values of labels."""
    engine = service_of(host).engine
    if isinstance(engine, StoredTaskEngine):
        await engine.tidy()
    assert host.assembly.observation is not None
    assert host.assembly.observation.page is not None
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await host.assembly.observation.page.serve({"method": "GET"}, {}, _never, send)
    families = text_string_to_metric_families(sent[1]["body"].decode())
    return {
        (sample.name, *(sample.labels[name] for name in LABELS if name in sample.labels)): sample.value
        for family in families
        for sample in family.samples
    }


async def _never() -> Any:
    raise AssertionError


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_task_in_the_metrics(kind: str) -> None:
    """A task is open, waits, is parked and runs again; every process counts the store and its own runs."""
    with store_of(kind) as url:
        async with replica(url, order, works=False) as server:
            peer = await DirectedPeer.connect(server, ADA)
            task_id = (await peer.start("order"))["taskId"]
            page = await scrape(server)
            assert page["axolotl_tasks_open", "order", "queued"] == 1
            assert page["axolotl_tasks_parked",] == 0
            async with replica(url, order) as worker:
                await _parked(server)
                page = await scrape(server)
                assert page["axolotl_tasks_open", "order", "input_required"] == 1
                await peer.respond(task_id, {"action": "accept", "content": {"amount": 3}}, key="amount")
                await peer.outcome(task_id)
                await until(lambda: not service_of(worker).runner.running)
                page = await scrape(worker)
        assert page["axolotl_task_runs_total", "order", "parked"] == 1
        assert page["axolotl_task_runs_total", "order", "completed"] == 1
        assert page["axolotl_task_run_seconds_count", "order"] == 2
        assert page["axolotl_task_wait_seconds_count", "order"] == 1
        assert page["axolotl_tasks_parked",] == page["axolotl_tasks_lost_total",] == 0
        assert not [names for names in page if names[0] == "axolotl_tasks_open"]


async def _parked(server: ServerHost) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if (await scrape(server))["axolotl_tasks_parked",] == 1:
                return
            await asyncio.sleep(0.01)  # sleeps: another server parks the task, which has no event here


async def test_lost_and_unclaimed_tasks_in_the_metrics(tmp_path: Path) -> None:
    """A run of a worker that is gone is counted where it is found; tasks that nobody begins are counted everywhere."""
    url = f"sqlite:///{tmp_path}/tasks.db"
    async with replica(url, order, fail, works=False) as server:
        peer = await DirectedPeer.connect(server, ADA)
        await peer.start("order")
        change_store(url, "update tasks set expires_at = expires_at - 60, ttl_seconds = ttl_seconds - 30", "")
        assert (await scrape(server))["axolotl_tasks_unclaimed",] == 1
        task_id = (await peer.start("fail"))["taskId"]
        change_store(url, f"update tasks set state = 'running', run = 1 where id = '{task_id}'", "")
        async with replica(url, fail) as worker:
            await peer.until(task_id, "failed")
            page = await scrape(worker)
            assert page["axolotl_tasks_lost_total",] == 1
            assert page["axolotl_tasks_open", "_unknown", "queued"] == 1


async def test_tasks_in_memory_in_the_metrics() -> None:
    """Tasks of the process itself are counted, too."""
    async with replica(None, order) as server:
        peer = await DirectedPeer.connect(server, ADA)
        task_id = (await peer.start("order"))["taskId"]
        await peer.until(task_id, "input_required")
        assert (await scrape(server))["axolotl_tasks_open", "order", "input_required"] == 1
        await peer.respond(task_id, {"action": "accept", "content": {"amount": 3}}, key="amount")
        await peer.outcome(task_id)
        await until(lambda: not service_of(server).runner.running)
        assert (await scrape(server))["axolotl_task_runs_total", "order", "completed"] == 1


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_the_span_of_a_run_is_linked_to_the_submission(kind: str, telemetry: Telemetry) -> None:
    """A run is a trace of its own, linked to the span of the request that submitted the task."""
    with store_of(kind) as url:
        async with replica(url, order, fail, telemetry={"traces": True}) as server:
            peer = await DirectedPeer.connect(server, ADA)
            task_id = (await peer.start("fail"))["taskId"]
            await peer.outcome(task_id)
            await until(lambda: not service_of(server).runner.running)
    submitted, run = telemetry.span("tools/call fail"), telemetry.span("task fail")
    assert submitted.context is not None
    assert run.context is not None
    assert [link.context.span_id for link in run.links] == [submitted.context.span_id]
    assert run.parent is None
    assert run.context.trace_id != submitted.context.trace_id
    said = dict(run.attributes or {})
    assert (said["axolotl.task.id"], said["axolotl.task.run"], said["gen_ai.tool.name"]) == (task_id, 1, "fail")


def test_labels_are_bounded() -> None:
    """Metrics of tasks have no labels with IDs, owners or arguments."""
    labels = {label for metric in (*METRICS, *TASK_METRICS) if ".task" in metric.name for label in metric.labels}
    assert labels == set(LABELS)


async def test_readiness_checks_the_store() -> None:
    """A server is degraded, not failed, while its store of tasks does not respond."""
    with store_of("postgres") as url:
        async with replica(url, order, works=False) as server:
            await _reach(server, "ok")  # when the connection that reports changes is open, too
            change_store(str(url), "", "alter schema axolotl rename to hidden")
            await _reach(server, "degraded")
            change_store(str(url), "", "alter schema hidden rename to axolotl")
            await _reach(server, "ok")
    async with replica(None, order) as server:
        assert await _states(server) == {}


async def test_a_server_without_tasks_does_not_check_the_store(tmp_path: Path) -> None:
    """A store that no tool uses is not opened, and so it is not checked."""
    flags = {"tasks": {"url": f"sqlite:///{tmp_path}/tasks.db"}}
    async with ServerHost(container_of(Echo()), flags=flags) as server:
        await server.begin()
        assert await _states(server) == {}


async def _states(server: ServerHost) -> dict[str, str]:
    report = await Health(server).readiness()
    return {result.name: result.state for result in report.results if result.name == "task_store"}


async def _reach(server: ServerHost, state: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if await _states(server) == {"task_store": state}:
                return
