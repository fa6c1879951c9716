"""The numbers of one server, kept as plain counts, for whatever sends or shows them."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from axolotl_server.observation.metrics import (
    BUCKETS,
    OPERATION_DURATION,
    QUEUE_DURATION,
    SESSION_DURATION,
    Metric,
)

__all__ = ["Counter", "Histogram", "Numbers", "Read", "Reading", "RecordDuration", "Series"]

Reading: TypeAlias = tuple[tuple[str, ...], float]
"""The values of the labels, and the number."""
Read: TypeAlias = Callable[[], Iterable[Reading]]
RecordDuration: TypeAlias = Callable[[float, Mapping[str, str]], object]

_MAX_SERIES: Final = 10_000
_OTHER: Final = "_other"
"""Stands for every label of what comes when there are too many combinations, as where features come and go."""


class Series:
    """One combination of labels of a histogram."""

    __slots__ = ("_followers", "attributes", "buckets", "sum")

    def __init__(self, attributes: Mapping[str, str], followers: Sequence[RecordDuration]) -> None:
        self.attributes = attributes
        """The labels that are not empty, by name."""
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0
        self._followers = followers

    def record(self, seconds: float) -> None:
        """Count a duration; a bound belongs to the bucket below it."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds
        for follow in self._followers:
            follow(seconds, self.attributes)


class Histogram:
    """Durations by labels."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._series: dict[tuple[str, ...], Series] = {}
        self.followers: list[RecordDuration] = []
        """What is told of each duration besides."""

    def series(self, labels: tuple[str, ...]) -> Series:
        """Give what counts the durations with these labels."""
        return self._series.get(labels) or self._begin(labels)

    def read(self) -> dict[tuple[str, ...], Series]:
        """Give what there is so far, by labels."""
        return self._series.copy()

    def _begin(self, labels: tuple[str, ...]) -> Series:
        if len(self._series) >= _MAX_SERIES:
            labels = (_OTHER,) * len(labels)
        names = self._metric.labels
        attributes = {name: value for name, value in zip(names, labels, strict=True) if value}
        return self._series.setdefault(labels, Series(attributes, self.followers))


class Counter:
    """A number that only grows, by labels."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, labels: tuple[str, ...]) -> None:
        """Count one more."""
        counts = self._counts
        if labels not in counts and len(counts) >= _MAX_SERIES:
            labels = (_OTHER,) * len(labels)
        counts[labels] = counts.get(labels, 0) + 1

    def read(self) -> Iterable[Reading]:
        """Give what there is so far."""
        return self._counts.copy().items()


class Numbers:
    """All metrics of one server: those that are counted here, and those that are read where they are."""

    def __init__(self) -> None:
        self.operations = Histogram(OPERATION_DURATION)
        self.sessions = Histogram(SESSION_DURATION)
        self.queues = Histogram(QUEUE_DURATION)
        self.calls = Counter()
        self.sheds = Counter()
        self.histograms: Mapping[str, Histogram] = {
            OPERATION_DURATION.name: self.operations,
            SESSION_DURATION.name: self.sessions,
            QUEUE_DURATION.name: self.queues,
        }
        self._read: dict[str, list[Read]] = {}
        self.watch("axolotl.calls", self.calls.read)
        self.watch("axolotl.calls.shed", self.sheds.read)

    def watch(self, metric: str, read: Read) -> None:
        """Read a metric in this way, too, whenever somebody asks."""
        self._read.setdefault(metric, []).append(read)

    def read(self, metric: str) -> list[Reading]:
        """Give a counter or a gauge as it is now."""
        return [reading for read in self._read.get(metric, ()) for reading in read()]
