"""The metrics page for Prometheus."""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from axolotl_server.http.asgi import HttpRefusal, Receive, Scope, Send
from axolotl_server.observation.metrics import BUCKETS, Metric, MetricValues

_BOUNDS: Final = (*map(str, BUCKETS), "+Inf")


class MetricsPage(Collector):
    """Serves the metrics of a server and its process, with labels that all of them get, from its own registry."""

    def __init__(self, values: MetricValues, labels: Mapping[str, str]) -> None:
        self._values = values
        self._labels = labels
        self._process = ProcessCollector(registry=None)
        self._registry = CollectorRegistry()
        self._registry.register(self)

    async def serve(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        """Answer a scrape in the format that it accepts."""
        if scope["method"] not in ("GET", "HEAD"):
            raise HttpRefusal(405, "Method not allowed: use GET", headers=[(b"allow", b"GET, HEAD")])
        encode, media_type = choose_encoder(headers.get(b"accept", b"").decode("latin-1"))
        page = encode(self._registry)
        sent = [(b"content-type", media_type.encode()), (b"content-length", b"%d" % len(page))]
        await send({"type": "http.response.start", "status": 200, "headers": sent})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else page})

    def collect(self) -> Iterator[Family]:
        for family in (*map(self._family_of, self._values.metrics), *self._process.collect()):
            family.samples = [one._replace(labels={**one.labels, **self._labels}) for one in family.samples]
            yield family

    def _family_of(self, metric: Metric) -> Family:
        name, text, labels = metric.prometheus_name, metric.description, metric.prometheus_labels
        histogram = self._values.histograms.get(metric.name)
        if histogram is not None:
            durations = HistogramMetricFamily(name, text, labels=labels)
            for of_series, series in histogram.read().items():
                buckets = list(zip(_BOUNDS, accumulate(series.buckets), strict=True))
                durations.add_metric(of_series, buckets, series.sum)
            return durations
        family = (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(name, text, labels=labels)
        for of_reading, value in self._values.read(metric.name):
            family.add_metric(of_reading, value)
        return family
