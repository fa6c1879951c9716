"""OpenTelemetry metrics through the provider of the process."""

import math
import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.metrics.export import HistogramDataPoint

from axolotl_server.observation.metrics import BUCKETS, METRICS
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.servers.observed_server import SECRET, Telemetry
from tests.support.servers.serving import until
from tests.support.tools import Echo, Probe, container_of, crash

SENT = {"telemetry": {"metrics": True}}


def durations(telemetry: Telemetry) -> Sequence[HistogramDataPoint]:
    points = telemetry.metrics()["mcp.server.operation.duration"].data.data_points
    assert all(isinstance(point, HistogramDataPoint) for point in points)
    return [point for point in points if isinstance(point, HistogramDataPoint)]


async def test_durations(telemetry: Telemetry) -> None:
    """The histogram has the name, unit, buckets and attributes of the conventions."""
    async with conversing(container_with((Echo(), crash)), settings=SENT) as host:
        peer = Peer(host)
        for _ in range(3):
            await peer.ask("tools/call", {"name": "echo", "arguments": {"text": SECRET}})
        await peer.ask("tools/call", {"name": "crash", "arguments": {"word": SECRET}})
        await peer.ask("tools/call", {"name": SECRET})
        await peer.ask("tools/list")
        await peer.close()
        assert telemetry.metrics()["mcp.server.operation.duration"].unit == "s"
        points = durations(telemetry)
    echoed = next(point for point in points if dict(point.attributes or {}).get("gen_ai.tool.name") == "echo")
    assert dict(echoed.attributes or {}) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "mcp.protocol.version": "2026-07-28",
        "network.transport": "pipe",
    }
    assert (echoed.count, tuple(echoed.explicit_bounds)) == (3, BUCKETS)
    assert math.isclose(sum(echoed.bucket_counts), 3)
    errors = {dict(point.attributes or {}).get("error.type") for point in points}
    assert errors == {None, "tool_error", "-32602"}
    assert SECRET not in repr(telemetry.metrics())


async def test_the_rest_is_observed(telemetry: Telemetry) -> None:
    """Counters and gauges are read on collection."""
    probe = Probe()
    async with conversing(container_of(probe), settings=SENT) as host:
        peer = await Peer(host).shake_hands()
        peer.call("probe", id=2)
        await probe.started.wait()
        assert telemetry.value("axolotl.calls.in_flight") == 1
        assert telemetry.value("axolotl.sessions") == 1
        probe.release.set()
        await peer.close()
        await until(lambda: not host.handler.inflight)
        assert telemetry.value("axolotl.calls.in_flight") == 0
        assert telemetry.value("axolotl.calls", kind="tool", name="probe", outcome="ok") == 1
        assert telemetry.value("axolotl.calls.shed", limit="in_flight") == 0
        assert telemetry.value("mcp.server.session.duration", mcp__protocol__version="2025-11-25") == 1
        collected = telemetry.metrics()
    assert {metric.unit for metric in METRICS if metric.name in collected} == {one.unit for one in collected.values()}


async def test_one_server_after_another(telemetry: Telemetry) -> None:
    """A provider can outlive a server: only the metrics of the running one are exported."""
    for count in (1, 2):
        async with conversing(container_of(Echo()), settings=SENT) as host:
            peer = Peer(host)
            for _ in range(count):
                await peer.ask("tools/call", {"name": "echo"})
            await peer.close()
            assert telemetry.value("axolotl.calls", name="echo") == count
    assert "axolotl.calls" not in telemetry.metrics()
    with telemetry.tracers.get_tracer("user").start_as_current_span("after"):
        pass
    assert telemetry.span("after").end_time is not None


async def test_two_servers_at_once(telemetry: Telemetry) -> None:
    """Metrics of two servers in one process are added."""
    async with (
        conversing(container_of(Echo()), settings=SENT) as first,
        conversing(container_of(Echo()), settings=SENT) as second,
    ):
        for host in (first, second):
            peer = Peer(host)
            await peer.ask("tools/call", {"name": "echo"})
            await peer.close()
        assert telemetry.value("axolotl.calls", name="echo") == 2
        assert sum(point.count for point in durations(telemetry)) == 2


async def test_numbers_are_sent_before_the_server_has_ended(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On shutdown metrics are flushed, if there are any."""
    flushed: list[str] = []
    monkeypatch.setattr(telemetry.meters, "force_flush", lambda: flushed.append("meters"))
    monkeypatch.setattr(telemetry.tracers, "force_flush", lambda: flushed.append("tracers"))
    both = {"telemetry": {"metrics": True, "traces": True}}
    async with conversing(container_of(Echo()), settings=both):
        pass
    assert flushed == []
    async with conversing(container_of(Echo()), settings=both) as host:
        await Peer(host).ask("tools/list")
    assert sorted(flushed) == ["meters", "tracers"]


async def test_an_exporter_that_hangs_does_not_prevent_shutdown(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A shutdown waits for telemetry up to a time limit."""
    released = threading.Event()
    monkeypatch.setattr(telemetry.meters, "force_flush", released.wait)
    try:
        monkeypatch.setattr("axolotl_server.observation.observation.FLUSH_SECONDS", 0.01)
        settings = {"telemetry": {"metrics": True}}
        async with conversing(container_of(Echo()), settings=settings) as host:
            await Peer(host).ask("tools/list")
    finally:
        released.set()
    assert "telemetry was not sent within 0.01 seconds" in caplog.text
