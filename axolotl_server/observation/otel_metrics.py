"""OpenTelemetry instruments: counters and gauges are read on collection, durations recorded as they are measured."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider, Observation

from axolotl_server.observation.metrics import BUCKETS, Metric, MetricValues, Reading


class Instruments:
    """The instruments of one provider, which all servers of a process share."""

    def __init__(self, provider: MeterProvider) -> None:
        self._meter = provider.get_meter("axolotl")
        self._servers: set[MetricValues] = set()
        self._known: set[str] = set()
        self._histograms: dict[str, Histogram] = {}

    def add(self, values: MetricValues) -> None:
        """Start sending the metrics of a server, those that it adds later included."""
        self._servers.add(values)
        values.on_add = partial(self._send, values)
        for metric in values.metrics:
            self._send(values, metric)

    def _send(self, values: MetricValues, metric: Metric) -> None:
        name, unit, text = metric.name, metric.unit, metric.description
        is_new = name not in self._known
        self._known.add(name)
        if metric.kind == "histogram":
            if is_new:
                self._histograms[name] = self._meter.create_histogram(
                    name, unit, text, explicit_bucket_boundaries_advisory=list(BUCKETS)
                )
            values.histograms[name].export = self._histograms[name].record
        elif is_new and metric.kind == "counter":
            self._meter.create_observable_counter(name, [self._reader(metric)], unit, text)
        elif is_new:
            self._meter.create_observable_up_down_counter(name, [self._reader(metric)], unit, text)

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
