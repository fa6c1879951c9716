"""OpenTelemetry instruments, which read the metrics of servers when an exporter collects them.

The SDK has no histogram that is read on collection, and its `record` costs as much as a whole call. So the counts of a
server's own histograms are added to the SDK's aggregations shortly before these are collected. This uses internals of
the SDK; where they are different, each duration is recorded.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from threading import Lock
from time import time_ns
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider, Observation

from axolotl_server.observation.metrics import BUCKETS, METRICS, Metric, MetricValues, Reading, RecordDuration, Series


class Pending(NamedTuple):
    """Durations of a series that the SDK does not have yet."""

    counts: Sequence[int]
    sum: float = 0.0
    min: float = inf
    max: float = -inf
    exemplars: Iterable[tuple[float, int, Context]] = ()
    """The latest duration in each bucket that may be an exemplar, with its time and context."""


_NOTHING: Final = Pending([0] * (len(BUCKETS) + 1))


class SdkHistogram:
    """A histogram of the SDK, with its aggregations: one for each reader, view and series."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram: Any = histogram
        self.record: Callable[[float, Mapping[str, str]], None] = histogram.record

    def begin(self, attributes: Mapping[str, str]) -> bool:
        """Begin a series; returns whether durations can be added to it later, instead of being recorded."""
        try:
            return self.add(attributes, _NOTHING)
        except (AttributeError, ImportError, TypeError):
            return False  # another provider than that of the SDK, or other internals

    def add(self, attributes: Mapping[str, str], pending: Pending) -> bool:
        """Add durations to all aggregations with the buckets of the server; returns whether that is all of them."""
        matches = self._matches()
        equal = [match for match in matches if _has_equal_buckets(match._aggregation)]
        for match in equal:
            with match._lock:
                _add(_aggregation(match, attributes), attributes, pending)
        return len(equal) == len(matches)

    def filter_exemplars(self) -> tuple[Callable[..., bool], bool]:
        """Return the function that decides about exemplars, and whether it is of interest outside of spans."""
        from opentelemetry.sdk.metrics import TraceBasedExemplarFilter

        found = self._histogram._measurement_consumer._sdk_config.exemplar_filter
        return found.should_sample, not isinstance(found, TraceBasedExemplarFilter)

    def _matches(self) -> list[Any]:
        """Return an object per reader and view, without those that drop everything."""
        from opentelemetry.sdk.metrics._internal.aggregation import _DropAggregation

        storages = tuple(self._histogram._measurement_consumer._reader_storages.values())
        matches = [match for one in storages for match in one._get_or_init_view_instrument_match(self._histogram)]
        return [match for match in matches if not isinstance(match._aggregation, _DropAggregation)]


def _has_equal_buckets(aggregation: Any) -> bool:
    from opentelemetry.sdk.metrics._internal.aggregation import _ExplicitBucketHistogramAggregation

    explicit = type(aggregation) is _ExplicitBucketHistogramAggregation
    return explicit and tuple(aggregation._boundaries) == BUCKETS


def _aggregation(match: Any, attributes: Mapping[str, str]) -> Any:
    """Find or make the aggregation of a series; a view can leave out attributes."""
    from opentelemetry.sdk.metrics._internal._view_instrument_match import _hash_attributes

    keys = match._view._attribute_keys
    kept = {name: value for name, value in attributes.items() if keys is None or name in keys}
    return match._get_or_create_aggregation(_hash_attributes(kept), kept)


def _add(aggregation: Any, attributes: Mapping[str, str], pending: Pending) -> None:
    with aggregation._lock:
        before = aggregation._value or aggregation._get_empty_bucket_counts()
        aggregation._value = [one + more for one, more in zip(before, pending.counts, strict=True)]
        aggregation._sum += pending.sum
        if aggregation._record_min_max:
            aggregation._min = min(aggregation._min, pending.min)
            aggregation._max = max(aggregation._max, pending.max)
    offer = aggregation._reservoir.offer
    for seconds, moment, context in pending.exemplars:
        offer(seconds, moment, attributes, context)


class DurationTally:
    """The durations of one series that have not been added to a histogram of the SDK."""

    def __init__(self, histogram: SdkHistogram, series: Series) -> None:
        self._histogram = histogram
        self._series = series
        self._added = _NOTHING.counts
        self._sum = 0.0
        self._low, self._high = inf, -inf
        self._exemplars: dict[int, tuple[float, int, Context]] = {}
        self._adds = histogram.begin(series.attributes)
        if self._adds:
            self._is_exemplar, self._always_asks = histogram.filter_exemplars()

    def record(self, seconds: float) -> None:
        """Remember what the buckets of the series do not say about a duration."""
        if not self._adds:
            self._histogram.record(seconds, self._series.attributes)
            return
        if seconds < self._low:  # noqa: PLR1730 - min() takes ten times as long
            self._low = seconds
        if seconds > self._high:  # noqa: PLR1730
            self._high = seconds
        context = contexts.get_current()
        if context or self._always_asks:
            moment = time_ns()
            if self._is_exemplar(seconds, moment, self._series.attributes, context):
                self._exemplars[bisect_left(BUCKETS, seconds)] = seconds, moment, context

    def deliver(self) -> None:
        """Add the durations since the last time, in a thread of the exporter; some may be left for the next time."""
        total, buckets = self._series.sum, self._series.buckets.copy()
        counts = [now - before for now, before in zip(buckets, self._added, strict=True)]
        if not self._adds or not any(counts):
            return
        low, high, self._low, self._high = self._low, self._high, inf, -inf
        exemplars, self._exemplars = self._exemplars, {}
        pending = Pending(counts, total - self._sum, low, high, exemplars.values())
        self._added, self._sum = buckets, total
        # Readers can be added to a provider at any time.
        self._adds = self._histogram.add(self._series.attributes, pending)


class Instruments:
    """The instruments of one provider, which all servers of a process share."""

    def __init__(self, provider: MeterProvider) -> None:
        self._meter = provider.get_meter("axolotl")
        self._servers: dict[MetricValues, list[DurationTally]] = {}
        self._delivering = Lock()
        self._histograms: dict[str, SdkHistogram] = {}
        for metric in METRICS:
            self._create(metric)

    def add(self, values: MetricValues) -> None:
        """Start sending the metrics of a server."""
        tallies = self._servers[values] = []
        for name, histogram in values.histograms.items():
            histogram.watchers.append(partial(_watch, self._histograms[name], tallies))

    def remove(self, values: MetricValues) -> None:
        """Stop sending the metrics of a server."""
        self._deliver(self._servers.pop(values, ()))

    def _create(self, metric: Metric) -> None:
        meter, name, unit, text = self._meter, metric.name, metric.unit, metric.description
        if metric.kind == "histogram":
            bounds = list(BUCKETS)
            histogram = meter.create_histogram(name, unit, text, explicit_bucket_boundaries_advisory=bounds)
            self._histograms[name] = SdkHistogram(histogram)
        elif metric.kind == "counter":
            meter.create_observable_counter(name, [self._reader(metric)], unit, text)
        else:
            meter.create_observable_up_down_counter(name, [self._reader(metric)], unit, text)

    def _reader(self, metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(options: CallbackOptions) -> Iterable[Observation]:
            for values, tallies in tuple(self._servers.items()):
                if metric is _FIRST_READ:
                    self._deliver(tallies)
                for labels, value in _read(values, metric):
                    yield Observation(value, dict(zip(metric.labels, labels, strict=True)))

        return read

    def _deliver(self, tallies: Iterable[DurationTally]) -> None:
        with self._delivering:
            for tally in tuple(tallies):
                tally.deliver()


_FIRST_READ: Final = next(metric for metric in METRICS if metric.kind != "histogram")
"""The metric with which durations are delivered: the SDK reads all values before it collects anything."""


def _watch(histogram: SdkHistogram, tallies: list[DurationTally], series: Series) -> RecordDuration:
    tally = DurationTally(histogram, series)
    tallies.append(tally)
    return tally.record


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
