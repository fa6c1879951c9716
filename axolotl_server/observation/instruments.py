"""The numbers of servers as instruments of OpenTelemetry."""

from collections.abc import Callable, Iterable
from typing import Final
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider, Observation

from axolotl_server.observation.metrics import BUCKETS, METRICS, Metric
from axolotl_server.observation.numbers import Numbers, Reading

__all__ = ["Instruments", "instruments_of"]


class Instruments:
    """All instruments of one provider; a provider takes each of them once, so that all servers share them."""

    def __init__(self, provider: MeterProvider) -> None:
        self._meter = provider.get_meter("axolotl")
        self._servers: dict[Numbers, None] = {}
        self._histograms: dict[str, Histogram] = {}
        for metric in METRICS:
            self._create(metric)

    def add(self, numbers: Numbers) -> None:
        """Send the numbers of a server from now on."""
        self._servers[numbers] = None
        for name, histogram in numbers.histograms.items():
            histogram.followers.append(self._histograms[name].record)

    def remove(self, numbers: Numbers) -> None:
        """Send them no more."""
        self._servers.pop(numbers, None)

    def _create(self, metric: Metric) -> None:
        meter, name, unit, text = self._meter, metric.name, metric.unit, metric.description
        if metric.kind == "histogram":
            bounds = list(BUCKETS)
            made = meter.create_histogram(name, unit, text, explicit_bucket_boundaries_advisory=bounds)
            self._histograms[name] = made
        elif metric.kind == "counter":
            meter.create_observable_counter(name, [self._reader(metric)], unit, text)
        else:
            meter.create_observable_up_down_counter(name, [self._reader(metric)], unit, text)

    def _reader(self, metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(options: CallbackOptions) -> Iterable[Observation]:
            for numbers in tuple(self._servers):
                for labels, value in _read(numbers, metric):
                    yield Observation(value, dict(zip(metric.labels, labels, strict=True)))

        return read


def _read(numbers: Numbers, metric: Metric) -> Iterable[Reading]:
    """Read from a thread of the exporter's; what changes at that very moment is read the next time."""
    try:
        return numbers.read(metric.name)
    except RuntimeError:
        return ()


_INSTRUMENTS: Final[WeakKeyDictionary[MeterProvider, Instruments]] = WeakKeyDictionary()


def instruments_of(provider: MeterProvider) -> Instruments:
    """Give the instruments of a provider, made when they are first wanted."""
    if provider not in _INSTRUMENTS:
        _INSTRUMENTS[provider] = Instruments(provider)
    return _INSTRUMENTS[provider]
