"""Telemetry of server processes, with and without a collector."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import constants
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


LOGGING = """
import logging

from dependency_injector import containers, providers

from axolotl_core import tool


@tool
async def add(a: int, b: int) -> int:
    logging.getLogger("acme").warning("adding", extra={"secret": "hunter2"})
    if a < 0:
        raise ValueError("hunter2 is in the traceback only")
    return a + b


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(add))
"""


def attributes_of(record: Any) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in record.attributes}


def test_logs_are_sent(processes: Processes, tmp_path: Path) -> None:
    """Log records are sent with severity, call and trace; neither arguments nor `extra`; stderr stays as it is."""
    (tmp_path / "tools.py").write_text(LOGGING, encoding="utf-8")
    with Collector() as collector:
        variables: dict[str, Any] = {
            **BOTH,
            "AXOLOTL_TELEMETRY__LOGS": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        }
        server = processes.start("serve", str(tmp_path / "tools.py"), **variables)
        assert add(server)["structuredContent"] == {"result": 5}
        assert server.ask("tools/call", name="add", arguments={"a": -1, "b": 3})["isError"]
        code, stdout, stderr = server.end()
    assert (code, stdout) == (0, ""), stderr
    assert "acme: adding" in stderr
    first, second, failed = [one for one in collector.log_records if one.severity_number >= 13]
    assert (first.body.string_value, first.severity_text) == ("adding", "WARNING")
    assert attributes_of(first)["axolotl.name"] == attributes_of(second)["axolotl.name"] == "add"
    spans = {
        span.span_id
        for one in collector.traces
        for found in one.resource_spans
        for scope in found.scope_spans
        for span in scope.spans
    }
    assert first.span_id in spans
    assert first.trace_id != second.trace_id
    assert "hunter2" not in str(attributes_of(first))
    assert attributes_of(failed)["exception.type"] == "ValueError"
    assert "in add" in attributes_of(failed)["exception.stacktrace"]


def test_logs_without_a_collector(processes: Processes, target: str) -> None:
    """Failures to send are on stderr, cause no further records, and a server with logs only ends in time."""
    variables: dict[str, Any] = {
        "AXOLOTL_TELEMETRY__LOGS": "true",
        **constants({"axolotl_server.observation.observation.FLUSH_SECONDS": 0.2}),
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_BLRP_MAX_QUEUE_SIZE": "16",
        "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE": "8",
    }
    server = processes.start("serve", target, **variables)
    add(server)
    code, stdout, _ = server.end()
    assert (code, stdout) == (0, "")


def test_nobody_waits_for_a_collector_that_is_not_there(processes: Processes, target: str) -> None:
    """A server ends in time although nothing can be sent, and logs that telemetry was lost."""
    variables: dict[str, Any] = {
        **BOTH,
        **constants({"axolotl_server.observation.observation.FLUSH_SECONDS": 0.2}),
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
