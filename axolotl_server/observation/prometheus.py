"""The metrics page for Prometheus."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from axolotl_server.http.asgi import HttpRefusal, Receive, Scope, Send
from axolotl_server.observation.metrics import BUCKETS, METRICS, Histogram, Metric, MetricValues, Reading, Series

_BOUNDS: Final = (*map(str, BUCKETS), "+Inf")


class MetricsPage:
    """Serves the metrics of a server and its process, from its own registry."""

    def __init__(self, values: MetricValues, labels: Mapping[str, str] | None = None) -> None:
        self._registry = CollectorRegistry()
        process = ProcessCollector(registry=None)
        for collector in (_ValuesCollector(values), process):
            self._registry.register(_LabelingCollector(collector, labels) if labels else collector)

    async def serve(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        """Answer a scrape in the format that it accepts."""
        if scope["method"] not in ("GET", "HEAD"):
            raise HttpRefusal(405, "Method not allowed: use GET", headers=[(b"allow", b"GET, HEAD")])
        encode, media_type = choose_encoder(headers.get(b"accept", b"").decode("latin-1"))
        page = encode(self._registry)
        sent = [(b"content-type", media_type.encode()), (b"content-length", b"%d" % len(page))]
        await send({"type": "http.response.start", "status": 200, "headers": sent})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else page})


class _ValuesCollector(Collector):
    def __init__(self, values: MetricValues) -> None:
        self._values = values

    def collect(self) -> Iterator[Family]:
        for metric in METRICS:
            histogram = self._values.histograms.get(metric.name)
            yield (
                _readings(metric, self._values.read(metric.name))
                if histogram is None
                else _durations(metric, histogram)
            )


class _LabelingCollector(Collector):
    """Adds the same labels to all metrics of another collector."""

    def __init__(self, collector: Collector, labels: Mapping[str, str]) -> None:
        self._collector = collector
        self._labels = labels

    def collect(self) -> Iterator[Family]:
        for family in self._collector.collect():
            family.samples = [one._replace(labels={**one.labels, **self._labels}) for one in family.samples]
            yield family


def _readings(metric: Metric, readings: Iterable[Reading]) -> Family:
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(metric.prometheus_name, metric.description, labels=metric.prometheus_labels)
    for labels, value in readings:
        family.add_metric(labels, value)
    return family


def _durations(metric: Metric, histogram: Histogram) -> Family:
    family = HistogramMetricFamily(metric.prometheus_name, metric.description, labels=metric.prometheus_labels)
    for labels, series in histogram.read().items():
        family.add_metric(labels, _cumulative(series), series.sum)
    return family


def _cumulative(series: Series) -> list[tuple[str, float]]:
    return list(zip(_BOUNDS, accumulate(series.buckets), strict=True))
