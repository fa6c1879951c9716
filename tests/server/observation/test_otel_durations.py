"""Durations that are added to the SDK's histograms on collection: the exported data is that of recording each one."""

from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import AlwaysOnExemplarFilter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.metrics.view import (
    DropAggregation,
    ExplicitBucketHistogramAggregation,
    ExponentialBucketHistogramAggregation,
    View,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from axolotl_server.observation.metrics import BUCKETS, QUEUE_DURATION, MetricValues
from axolotl_server.observation.otel_metrics import instruments_of

NAME = QUEUE_DURATION.name
EVERY: dict[type, AggregationTemporality] = {Histogram: AggregationTemporality.DELTA}
ROUNDS: Sequence[Sequence[tuple[str, float]]] = (
    [("slow", 0.75), ("slow", 4.0), ("quick", 0.0), ("quick", 0.01), ("slow", 1000.0)],
    [("quick", 0.25), ("new", 0.5)],
    [],
    [("quick", 64.0), ("quick", 0.125), ("slow", 0.5)],
)
"""Labels and durations between collections."""


class Pair:
    """A provider that gets the durations of a server, and one that has each duration recorded, as a reference."""

    def __init__(self, views: Sequence[View] = (), temporality: dict[type, Any] | None = None, **options: Any) -> None:
        self._views, self._temporality, self._options = views, temporality, options
        self.added, added = self.provider()
        self.recorded, recorded = self.provider()
        self.readers = [added, recorded]
        self.values = MetricValues()
        instruments_of(self.added).add(self.values)
        meter = self.recorded.get_meter("axolotl")
        unit, text = QUEUE_DURATION.unit, QUEUE_DURATION.description
        self._reference = meter.create_histogram(NAME, unit, text, explicit_bucket_boundaries_advisory=list(BUCKETS))

    def provider(self) -> tuple[MeterProvider, InMemoryMetricReader]:
        reader = InMemoryMetricReader(self._temporality)
        resource = Resource({"service.name": "till"})
        provider = MeterProvider([reader], resource, shutdown_on_exit=False, views=self._views, **self._options)
        return provider, reader

    def record(self, name: str, seconds: float) -> None:
        self.values.queues.series(("tool", name)).record(seconds)
        self._reference.record(seconds, {"kind": "tool", "name": name})

    def exported(self) -> list[Any]:
        """Collect both and give the resource, the scope and the points as they are sent, without times."""
        return [_sent(reader) for reader in self.readers]


def _sent(reader: InMemoryMetricReader) -> Any:
    data = reader.get_metrics_data()
    if data is None:
        return None
    [found] = MessageToDict(encode_metrics(data))["resourceMetrics"]
    [scope] = found["scopeMetrics"]
    histograms = [metric for metric in scope["metrics"] if not {"histogram", "exponentialHistogram"}.isdisjoint(metric)]
    sent = {"resource": found["resource"], "scope": scope["scope"], "metrics": histograms}
    return _comparable(sent) if histograms else None


def _comparable(value: Any) -> Any:
    """Leave out times, and sort: the order of points has no meaning."""
    if isinstance(value, list):
        return sorted((_comparable(one) for one in value), key=str) if value and isinstance(value[0], dict) else value
    if isinstance(value, dict):
        return {key: _comparable(one) for key, one in value.items() if not key.endswith("UnixNano")}
    return value


EXPONENTIAL = View(instrument_name=NAME, aggregation=ExponentialBucketHistogramAggregation())
OTHER_BUCKETS = View(instrument_name=NAME, aggregation=ExplicitBucketHistogramAggregation((0.1, 1.0)))
SAME_BUCKETS = View(instrument_name=NAME, aggregation=ExplicitBucketHistogramAggregation(BUCKETS, record_min_max=False))
VIEWS: dict[str, list[View]] = {
    "none": [],
    "renamed": [View(instrument_name=NAME, name="mine", description="My text")],
    "fewer attributes": [View(instrument_name=NAME, attribute_keys={"kind"})],
    "no minimum": [SAME_BUCKETS],
    "dropped": [View(instrument_name=NAME, aggregation=DropAggregation())],
    "exponential": [EXPONENTIAL],
    "other buckets": [OTHER_BUCKETS],
    "two": [View(instrument_name=NAME), View(instrument_name=NAME, name="mine", attribute_keys={"name"})],
}


@pytest.mark.parametrize("temporality", [None, EVERY], ids=["cumulative", "delta"])
@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_the_exported_data_is_the_same(
    views: list[View], temporality: dict[type, AggregationTemporality] | None
) -> None:
    """Resource, scope, names, attributes, buckets, sums, minima and maxima are those of the SDK's own recording."""
    pair = Pair(views, temporality)
    for durations in ROUNDS:
        for name, seconds in durations:
            pair.record(name, seconds)
        added, recorded = pair.exported()
        assert added == recorded
        assert (recorded is None) == (views == VIEWS["dropped"] or (temporality is EVERY and not durations))


@pytest.mark.parametrize("options", [{}, {"exemplar_filter": AlwaysOnExemplarFilter()}], ids=["traced", "all"])
def test_exemplars(options: dict[str, Any]) -> None:
    """A bucket has the latest duration of a sampled call as its exemplar, or of any call if the filter says so."""
    pair = Pair(**options)
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("mine")
    for number in range(3):
        with tracer.start_as_current_span("call"):
            pair.record("quick", 0.0625 + number / 64)
            pair.record("quick", 8.0)
        with trace.use_span(trace.NonRecordingSpan(trace.INVALID_SPAN_CONTEXT)):
            pair.record("quick", 0.75)
        pair.record("quick", 16.0)
        added, recorded = pair.exported()
        assert added == recorded
        [point] = recorded["metrics"][0]["histogram"]["dataPoints"]
        assert len(point["exemplars"]) == (4 if options else 2)


def test_points_begin_with_their_first_duration() -> None:
    """The start of a series is the time of its first duration, not that of a collection."""
    pair = Pair()
    pair.record("quick", 0.5)
    data = pair.readers[1].get_metrics_data()
    late = data.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points[0] if data else None
    data = pair.readers[0].get_metrics_data()
    assert data is not None
    metrics = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    [point] = metrics[NAME].data.data_points
    assert late is not None
    assert point.start_time_unix_nano is not None
    assert point.start_time_unix_nano < late.time_unix_nano < point.time_unix_nano


def test_several_readers() -> None:
    """Each reader gets every duration once, a reader with other buckets too, although it was added later."""
    pair = Pair()
    pair.record("quick", 0.5)
    pair.exported()
    for provider in (pair.added, pair.recorded):
        reader = InMemoryMetricReader(preferred_aggregation={Histogram: ExponentialBucketHistogramAggregation()})
        provider.add_metric_reader(reader)
        pair.readers.append(reader)
    pair.exported()
    for _ in range(2):
        pair.record("quick", 0.25)
        pair.record("slow", 0.25)
        added, recorded, added_later, recorded_later = pair.exported()
        assert added == recorded
    assert {kind for metric in added_later["metrics"] for kind in metric} > {"exponentialHistogram"}
    assert len(recorded_later["metrics"][0]["exponentialHistogram"]["dataPoints"]) == 2


def test_durations_of_a_server_that_has_ended() -> None:
    """What a server measured between the last collection and its end is not lost."""
    pair = Pair()
    pair.record("quick", 0.5)
    instruments_of(pair.added).remove(pair.values)
    added, recorded = pair.exported()
    assert added == recorded


def test_the_sdk_is_not_asked_during_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording costs as much as a whole call: it happens only where counts cannot be added."""
    recorded: list[float] = []
    monkeypatch.setattr(Histogram, "record", lambda self, seconds, *more: recorded.append(seconds))
    Pair().values.queues.series(("tool", "quick")).record(0.5)
    assert recorded == []
    Pair([EXPONENTIAL]).values.queues.series(("tool", "quick")).record(0.5)
    assert recorded == [0.5]
