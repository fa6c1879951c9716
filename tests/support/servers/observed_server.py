"""Servers with metrics and traces, and their readers."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from dependency_injector import containers
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, Metric
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from tests.support.servers.authenticated_server import gated
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer

SECRET = "swordfish-7c1f"
"""A secret that must not appear anywhere."""


class Scraped:
    """The metrics page at one time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families = {family.name: family for family in text_string_to_metric_families(text)}

    def samples(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return all samples of a name, by their non-empty labels."""
        found = (sample for family in self.families.values() for sample in family.samples if sample.name == name)
        return {_said(sample.labels): sample.value for sample in found}

    def value(self, sample: str, /, **labels: str) -> float:
        """Sum the samples of a name that have at least these labels."""
        return sum(value for said, value in self.samples(sample).items() if set(labels.items()) <= set(said))


class Watched:
    """An HTTP server and a client."""

    def __init__(self, server: HttpServer, http: httpx2.AsyncClient) -> None:
        self.server = server
        self.http = http
        self.root = server.url.removesuffix("/mcp")

    async def scrape(self, path: str = "/metrics", **headers: str) -> Scraped:
        """Read the metrics page."""
        reply = await self.http.get(f"{self.root}{path}", headers=headers)
        assert reply.status_code == 200, reply.text
        return Scraped(reply.text)


@asynccontextmanager
async def watched(container: containers.Container, **sections: Mapping[str, Any]) -> AsyncIterator[Watched]:
    """Serve a container with the metrics page."""
    settings: dict[str, Any] = {"metrics": {"enabled": True}, **sections}
    async with (
        gated({}, container, **settings) as server,
        httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http,
    ):
        yield Watched(server, http)


class Telemetry:
    """Real providers that keep everything in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """The ended spans."""
        return self.exporter.get_finished_spans()

    def span(self, name: str) -> ReadableSpan:
        """Return the only span of a name."""
        [found] = [span for span in self.spans if span.name == name]
        return found

    def metrics(self) -> dict[str, Metric]:
        """Collect all metrics once."""
        data = self.reader.get_metrics_data()
        assert data is not None
        scopes = (scope for one in data.resource_metrics for scope in one.scope_metrics)
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def value(self, metric: str, /, **attributes: str) -> float:
        """Sum the points of a metric that have at least these attributes; for durations, count them."""
        points = self.metrics()[metric].data.data_points
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        chosen = [point for point in points if wanted.items() <= dict(point.attributes or {}).items()]
        return sum(map(_number, chosen))


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Telemetry]:
    """Pretend that the process has these providers, which can be set only once per process."""
    made = Telemetry()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made.tracers)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: made.meters)
    yield made
    made.tracers.shutdown()
    made.meters.shutdown()


def _said(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def _number(point: Any) -> float:
    number: float = point.count if hasattr(point, "count") else point.value
    return number
