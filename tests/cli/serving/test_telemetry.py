"""Telemetry of server processes, with and without a collector."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Processes
from tests.support.telemetry_collector import Collector

TOOLS = """
from dependency_injector import containers, providers
from opentelemetry import trace

from axolotl_core import tool


@tool
async def add(a: int, b: int) -> int:
    with trace.get_tracer("mine").start_as_current_span("adding"):
        return a + b


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(add))
"""
BOTH: dict[str, Any] = {"AXOLOTL_TELEMETRY__TRACES": "true", "AXOLOTL_TELEMETRY__METRICS": "true"}


@pytest.fixture
def target(tmp_path: Path) -> str:
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    return str(tmp_path / "tools.py")


def add(server: Any) -> Any:
    server.shake_hands()
    return server.ask("tools/call", name="add", arguments={"a": 2, "b": 3})


def test_everything_is_sent_before_the_end(processes: Processes, target: str) -> None:
    """The standard variables set the collector; spans of a tool's code are sent too, and stdout stays clean."""
    with Collector() as collector:
        variables: dict[str, Any] = {**BOTH, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "adder"}
        server = processes.start("serve", target, **variables)
        assert add(server)["structuredContent"] == {"result": 5}
        code, stdout, stderr = server.end()
    assert (code, stdout) == (0, ""), stderr
    assert sorted(collector.span_names) == ["adding", "initialize", "tools/call add"]
    assert {"mcp.server.operation.duration", "axolotl.calls", "axolotl.calls.in_flight"} <= collector.metric_names
    assert collector.services == {"adder"}


def test_nobody_waits_for_a_collector_that_is_not_there(processes: Processes, target: str) -> None:
    """A server ends in time although nothing can be sent, and logs that telemetry was lost."""
    variables: dict[str, Any] = {
        **BOTH,
        "AXOLOTL_TELEMETRY__FLUSH_SECONDS": "0.2",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    }
    server = processes.start("serve", target, **variables)
    add(server)
    began = time.monotonic()
    code, stdout, stderr = server.end()
    assert time.monotonic() - began < 5
    assert (code, stdout) == (0, "")
    assert "telemetry was not sent within 0.2 seconds" in stderr


def test_the_console_exporter_does_not_touch_the_protocol(processes: Processes, target: str) -> None:
    """Spans that are printed do not go to stdout, which belongs to the protocol."""
    server = processes.start("serve", target, **BOTH, OTEL_TRACES_EXPORTER="console", OTEL_METRICS_EXPORTER="console")
    add(server)
    code, stdout, stderr = server.end()
    assert (code, stdout) == (0, "")
    assert '"name": "tools/call add"' in stderr


def test_without_exporters_nothing_is_sent(processes: Processes, target: str) -> None:
    """The exporter `none` is supported, as the standard requires."""
    server = processes.start("serve", target, **BOTH, OTEL_TRACES_EXPORTER="none", OTEL_METRICS_EXPORTER="none")
    add(server)
    code, stdout, stderr = server.end()
    assert (code, stdout, stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("variables", "finding"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER names the exporter 'zipkin', which is not inst"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"}, "OTEL_EXPORTER_OTLP_PROTOCOL is 'pigeon': use one of http/protob"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "the exporter 'otlp_proto_grpc', which is not installed"),
    ],
)
def test_wrong_variables_end_the_start(
    processes: Processes, target: str, variables: dict[str, Any], finding: str
) -> None:
    """The error for an unknown exporter names the known ones."""
    code, stdout, stderr = processes.run("serve", target, **BOTH, **variables)
    assert (code, stdout) == (2, "")
    assert finding in stderr


def test_looking_at_a_server_sends_nothing(processes: Processes, target: str) -> None:
    """A command without a call does not wait for a collector."""
    with Collector() as collector:
        variables: dict[str, Any] = {**BOTH, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        code, stdout, _ = processes.run("list", target, "--json", **variables)
    assert code == 0
    assert json.loads(stdout)
    assert not collector.traces
    assert not collector.metrics
