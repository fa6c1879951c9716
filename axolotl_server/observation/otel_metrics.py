"""OpenTelemetry instruments: counters and gauges are read on collection, durations recorded as they are measured."""

from collections.abc import Callable, Iterable
from typing import Final
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider, Observation

from axolotl_server.observation.metrics import BUCKETS, METRICS, Metric, MetricValues, Reading


class Instruments:
    """The instruments of one provider, which all servers of a process share."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter("axolotl")
        self._servers: set[MetricValues] = set()
        self._histograms: dict[str, Histogram] = {}
        for metric in METRICS:
            name, unit, text = metric.name, metric.unit, metric.description
            if metric.kind == "histogram":
                bounds = list(BUCKETS)
                self._histograms[name] = meter.create_histogram(
                    name, unit, text, explicit_bucket_boundaries_advisory=bounds
                )
            elif metric.kind == "counter":
                meter.create_observable_counter(name, [self._reader(metric)], unit, text)
            else:
                meter.create_observable_up_down_counter(name, [self._reader(metric)], unit, text)

    def add(self, values: MetricValues) -> None:
        """Start sending the metrics of a server."""
        self._servers.add(values)
        for name, histogram in values.histograms.items():
            histogram.export = self._histograms[name].record

    def remove(self, values: MetricValues) -> None:
        """Stop sending the metrics of a server."""
        self._servers.discard(values)

    def _reader(self, metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(options: CallbackOptions) -> Iterable[Observation]:
            for values in tuple(self._servers):
                for labels, value in _read(values, metric):
                    yield Observation(value, dict(zip(metric.labels, labels, strict=True)))

        return read


def _read(values: MetricValues, metric: Metric) -> Iterable[Reading]:
    """Read in a thread of the exporter; values that change at the same moment are read the next time."""
    try:
        return values.read(metric.name)
    except RuntimeError:
        return ()


_INSTRUMENTS: Final[WeakKeyDictionary[MeterProvider, Instruments]] = WeakKeyDictionary()


def instruments_of(provider: MeterProvider) -> Instruments:
    """Return the instruments of a provider, which are made when they are first needed."""
    if provider not in _INSTRUMENTS:
        _INSTRUMENTS[provider] = Instruments(provider)
    return _INSTRUMENTS[provider]
