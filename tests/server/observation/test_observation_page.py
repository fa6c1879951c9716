"""The metrics page: formats, path and limits."""

import os
from typing import Any

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_server import ServerHost
from axolotl_server.extensions.tasks.task_telemetry import TASK_METRICS
from axolotl_server.observation.metrics import BUCKETS, METRICS, Counter, Histogram
from tests.support.peers.task_peers import Job
from tests.support.peers.wire import call, mirrored, raw_exchange, raw_request
from tests.support.servers.authenticated_server import gated
from tests.support.servers.observed_server import watched
from tests.support.tools import Echo, container_of

COUNT = "mcp_server_operation_duration_seconds_count"


async def test_durations_fall_into_the_buckets_of_the_conventions() -> None:
    """Durations have the buckets of the MCP conventions, cumulative as in Prometheus."""
    async with watched(container_of(Echo())) as seen:
        await seen.http.post(seen.server.url, content=call("echo"), headers=mirrored(name="echo"))
        page = await seen.scrape()
    buckets = page.samples("mcp_server_operation_duration_seconds_bucket")
    assert sorted(float(dict(labels)["le"]) for labels in buckets) == [*BUCKETS, float("inf")]
    assert [value for _, value in sorted(buckets.items(), key=lambda one: float(dict(one[0])["le"]))][-1] == 1
    assert page.value("mcp_server_operation_duration_seconds_sum") > 0


async def test_every_metric_is_on_the_page() -> None:
    """Every metric is on the page, or appears with its first value; those of tasks where a tool runs as a task."""
    async with watched(container_of(Job())) as seen:
        page = await seen.scrape()
    assert {metric.prometheus_name for metric in (*METRICS, *TASK_METRICS)} <= set(page.families)
    for name in ("axolotl_threads_waiting", "axolotl_processes", "axolotl_tasks", "axolotl_event_loop_stalls_total"):
        assert page.samples(name) == {(): 0}
    assert page.value("process_resident_memory_bytes") > 0


async def test_the_page_answers_whoever_asks() -> None:
    """The page allows any host, only GET, and negotiates its format."""
    async with watched(container_of(Echo()), metrics={"enabled": True}) as seen:
        got = await raw_exchange(seen.server.port, raw_request(b"", [], method="GET", path="/metrics", host="10.1.2.3"))
        assert got.status == 200
        assert got.headers["content-type"].startswith("text/plain")
        head = await seen.http.head(f"{seen.root}/metrics")
        assert (head.status_code, head.content) == (200, b"")
        posted = await seen.http.post(f"{seen.root}/metrics")
        assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD")
        accept = "application/openmetrics-text; version=1.0.0"
        open_metrics = await seen.http.get(f"{seen.root}/metrics", headers={"Accept": accept})
        assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")
        assert open_metrics.text.endswith("# EOF\n")


async def test_each_of_several_workers_has_numbers_of_its_own() -> None:
    """With several workers, every sample has a label for its worker."""
    sections: dict[str, Any] = {"metrics": {"enabled": True}, "http": {"workers": 2}}
    async with watched(container_of(Echo()), **sections) as seen:
        await seen.http.post(seen.server.url, content=call("echo"), headers=mirrored(name="echo"))
        page = await seen.scrape()
    assert page.value(COUNT, worker=str(os.getpid()), gen_ai_tool_name="echo") == 1
    samples = [sample for family in page.families.values() for sample in family.samples]
    assert {sample.labels.get("worker") for sample in samples} == {str(os.getpid())}


async def test_there_is_no_page_unless_it_is_wanted() -> None:
    """Without the setting there is no page."""
    async with gated({}, container_of(Echo())) as server:
        got = await raw_exchange(server.port, raw_request(b"", [], method="GET", path="/metrics"))
        assert got.status == 404


@pytest.mark.parametrize("http", [{"path": "/metrics"}, {"sse_path": "/metrics"}])
async def test_the_page_needs_a_path_of_its_own(http: dict[str, str]) -> None:
    """The path of the page must differ from the endpoint."""
    settings = {"metrics": {"enabled": True}, "http": http}
    with pytest.raises(ConfigurationError, match="/metrics is the path of the metrics: choose another"):
        await ServerHost(container_of(Echo()), flags=settings).start()


def test_combinations_of_labels_are_bounded() -> None:
    """The number of label combinations is limited."""
    counter, histogram = Counter(), Histogram(METRICS[2])
    for number in range(10_050):
        counter.add(("tool", f"tool-{number}", "ok"))
        histogram.series(("tool", f"tool-{number}")).record(0.5)
    assert len(dict(counter.read())) == len(histogram.read()) == 10_001
    assert dict(counter.read())[("_other",) * 3] == 50
    assert sum(histogram.read()[("_other",) * 2].buckets) == 50
