"""Where the numbers are that a server keeps anyway."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from axolotl_core.layers import ILayer
from axolotl_server.calls.feature_method import InFlight
from axolotl_server.execution.processes import ProcessRunner
from axolotl_server.execution.threads import ThreadRunner
from axolotl_server.layers.breaker import BreakerLayer
from axolotl_server.layers.concurrency import ConcurrencyLayer
from axolotl_server.lifecycle.watchdog import Watchdog
from axolotl_server.methods.subscriptions import Subscriptions
from axolotl_server.tasks.task import TaskStore

BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""The bounds of all histograms, in seconds, as the conventions for MCP have them."""

UNKNOWN: Final = "_unknown"
"""Stands for a name from the wire that nothing was registered under: there may be any number of those."""

_PROMETHEUS_UNITS: Final = {"s": "_seconds"}


@dataclass(frozen=True, slots=True)
class Metric:
    """A number with labels."""

    name: str
    kind: Literal["histogram", "counter", "gauge"]
    unit: str
    description: str
    labels: tuple[str, ...] = ()

    @property
    def prometheus_name(self) -> str:
        """The name by the rules of Prometheus, without the `_total` of a counter."""
        return self.name.replace(".", "_") + _PROMETHEUS_UNITS.get(self.unit, "")

    @property
    def prometheus_labels(self) -> tuple[str, ...]:
        """The names of the labels by the rules of Prometheus."""
        return tuple(label.replace(".", "_") for label in self.labels)


OPERATION_DURATION: Final = Metric(
    "mcp.server.operation.duration",
    "histogram",
    "s",
    "How long a request took from its arrival to its answer",
    (
        "mcp.method.name",
        "gen_ai.operation.name",
        "gen_ai.tool.name",
        "gen_ai.prompt.name",
        "mcp.resource.uri",
        "error.type",
        "rpc.response.status_code",
        "mcp.protocol.version",
        "network.transport",
    ),
)
SESSION_DURATION: Final = Metric(
    "mcp.server.session.duration",
    "histogram",
    "s",
    "How long a connection with a handshake lasted",
    ("mcp.protocol.version",),
)
QUEUE_DURATION: Final = Metric(
    "axolotl.call.queue.duration",
    "histogram",
    "s",
    "How long a call waited for a place, where it had to wait",
    ("kind", "name"),
)

METRICS: Final = (
    OPERATION_DURATION,
    SESSION_DURATION,
    QUEUE_DURATION,
    Metric("axolotl.calls", "counter", "{call}", "Calls that ended, by how they did", ("kind", "name", "outcome")),
    Metric("axolotl.calls.in_flight", "gauge", "{call}", "Calls that run or wait for a place"),
    Metric("axolotl.calls.waiting", "gauge", "{call}", "Calls that wait for a place of a concurrency limit"),
    Metric("axolotl.calls.shed", "counter", "{call}", "Calls refused because there was too much to do", ("limit",)),
    Metric("axolotl.zombies", "gauge", "{call}", "Code that goes on although its caller was answered", ("name",)),
    Metric("axolotl.zombies.left", "counter", "{call}", "Code that was left behind since the start"),
    Metric("axolotl.threads.waiting", "gauge", "{call}", "Calls that wait for a worker thread"),
    Metric("axolotl.processes", "gauge", "{process}", "Worker processes"),
    Metric("axolotl.processes.killed", "counter", "{process}", "Worker processes ended before their code was"),
    Metric("axolotl.circuits.open", "gauge", "{circuit}", "Whether a breaker refuses calls, 1 or 0", ("name",)),
    Metric("axolotl.event_loop.stalls", "counter", "{stall}", "Times that code held up the event loop"),
    Metric("axolotl.sessions", "gauge", "{session}", "Connections that stay: sessions, and a process on stdio"),
    Metric("axolotl.subscriptions", "gauge", "{subscription}", "Open subscriptions/listen streams"),
    Metric("axolotl.tasks", "gauge", "{task}", "Tasks that are kept"),
    Metric(
        "axolotl.http.refusals",
        "counter",
        "{request}",
        "Requests over HTTP that were refused before a method saw them",
        ("status",),
    ),
)
"""All of them."""


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


class MetricValues:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """The parts of a server that count something."""

    inflight: InFlight
    subscriptions: Subscriptions
    tasks: TaskStore
    threads: ThreadRunner
    processes: ProcessRunner
    layers: Sequence[ILayer]

    def feed(self, numbers: MetricValues, watchdog: Watchdog | None) -> None:
        """Have all of them read whenever somebody asks."""
        inflight, processes = self.inflight, self.processes
        zombies = inflight.zombies
        single: dict[str, Callable[[], int]] = {
            "axolotl.calls.in_flight": inflight.__len__,
            "axolotl.calls.waiting": self._waiting,
            "axolotl.zombies.left": lambda: zombies.total,
            "axolotl.threads.waiting": lambda: self.threads.waiting,
            "axolotl.processes": lambda: processes.processes,
            "axolotl.processes.killed": lambda: processes.killed,
            "axolotl.sessions": lambda: self.subscriptions.connections,
            "axolotl.subscriptions": lambda: self.subscriptions.listeners,
            "axolotl.tasks": lambda: self.tasks.kept,
        }
        for name, read in single.items():
            numbers.watch(name, _one(read))
        numbers.watch("axolotl.calls.shed", lambda: [(("in_flight",), inflight.refused)])
        numbers.watch("axolotl.zombies", lambda: _labelled(zombies.by_name()))
        numbers.watch("axolotl.circuits.open", self._open_circuits)
        if watchdog is not None:
            numbers.watch("axolotl.event_loop.stalls", _one(lambda: watchdog.stalls))

    def _waiting(self) -> int:
        layers = (layer for layer in self.layers if isinstance(layer, ConcurrencyLayer))
        return sum(bulkhead.waiting for layer in layers for bulkhead in tuple(layer.bulkheads))

    def _open_circuits(self) -> Iterable[Reading]:
        layers = (layer for layer in self.layers if isinstance(layer, BreakerLayer))
        circuits = [circuit for layer in layers for circuit in tuple(layer.circuits.items())]
        return [((name,), circuit.state == "open") for name, circuit in circuits]


def _one(read: Callable[[], int]) -> Callable[[], Iterable[Reading]]:
    return lambda: [((), read())]


def _labelled(counts: Mapping[str, int]) -> Iterable[Reading]:
    return [((name,), count) for name, count in counts.items()]
