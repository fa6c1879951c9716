"""The metrics of a server: their definitions, and their values for Prometheus and OpenTelemetry."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from axolotl_core.layers import Layer
from axolotl_server.calls.running_call import RunningCalls
from axolotl_server.execution.processes import ProcessRunner
from axolotl_server.execution.threads import ThreadRunner
from axolotl_server.execution.watchdog import Watchdog
from axolotl_server.layers.breaker import BreakerLayer
from axolotl_server.layers.concurrency import ConcurrencyLayer
from axolotl_server.protocol.subscriptions import Subscriptions

BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""The bounds of all histograms, in seconds, from the OpenTelemetry conventions for MCP."""

UNKNOWN: Final = "_unknown"
"""The label for names that are not registered, because clients can send any number of them."""


@dataclass(frozen=True, slots=True)
class Metric:
    """The definition of a metric."""

    name: str
    kind: Literal["histogram", "counter", "gauge"]
    unit: str
    description: str
    labels: tuple[str, ...] = ()

    @property
    def prometheus_name(self) -> str:
        """The name in Prometheus, without the `_total` of a counter."""
        return self.name.replace(".", "_") + ("_seconds" if self.unit == "s" else "")

    @property
    def prometheus_labels(self) -> tuple[str, ...]:
        """The names of the labels in Prometheus."""
        return tuple(label.replace(".", "_") for label in self.labels)


OPERATION_DURATION: Final = Metric(
    "mcp.server.operation.duration",
    "histogram",
    "s",
    "Duration of requests, from arrival to answer",
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
    "Duration of connections with a handshake",
    ("mcp.protocol.version",),
)
QUEUE_DURATION: Final = Metric(
    "axolotl.call.queue.duration",
    "histogram",
    "s",
    "Time that calls waited for a slot, if they had to wait",
    ("kind", "name"),
)

METRICS: Final = (
    OPERATION_DURATION,
    SESSION_DURATION,
    QUEUE_DURATION,
    Metric("axolotl.calls", "counter", "{call}", "Calls that have ended, by outcome", ("kind", "name", "outcome")),
    Metric("axolotl.calls.in_flight", "gauge", "{call}", "Calls that are running or waiting for a slot"),
    Metric("axolotl.calls.waiting", "gauge", "{call}", "Calls that are waiting because of a concurrency limit"),
    Metric("axolotl.calls.shed", "counter", "{call}", "Calls refused because of overload", ("limit",)),
    Metric("axolotl.zombies", "gauge", "{call}", "Abandoned calls whose code is still running", ("name",)),
    Metric("axolotl.zombies.left", "counter", "{call}", "Abandoned calls since the start"),
    Metric("axolotl.threads.waiting", "gauge", "{call}", "Calls that are waiting for a thread"),
    Metric("axolotl.processes", "gauge", "{process}", "Tool processes"),
    Metric("axolotl.processes.killed", "counter", "{process}", "Tool processes killed while their code was running"),
    Metric("axolotl.circuits.open", "gauge", "{circuit}", "Whether a circuit breaker is open, 1 or 0", ("name",)),
    Metric("axolotl.event_loop.stalls", "counter", "{stall}", "Times that code blocked the event loop"),
    Metric("axolotl.sessions", "gauge", "{session}", "Open connections: HTTP sessions, SSE and stdio"),
    Metric("axolotl.subscriptions", "gauge", "{subscription}", "Open subscriptions/listen streams"),
    Metric(
        "axolotl.http.refusals",
        "counter",
        "{request}",
        "Requests over HTTP that were refused before they reached a method",
        ("status",),
    ),
)
"""All metrics of a server without extensions."""


Reading: TypeAlias = tuple[tuple[str, ...], float]
"""The values of the labels, and the value of the metric."""
Read: TypeAlias = Callable[[], Iterable[Reading]]
ExportDuration: TypeAlias = Callable[[float, Mapping[str, str]], object]

_MAX_SERIES: Final = 10_000
_OTHER: Final = "_other"
"""The label for further combinations when there are too many, for example if features change often."""


class Series:
    """One combination of labels of a histogram."""

    __slots__ = ("_export", "attributes", "buckets", "sum")

    def __init__(self, attributes: Mapping[str, str], export: ExportDuration | None) -> None:
        self.attributes = attributes
        """The labels that are not empty, by name."""
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0
        self._export = export

    def record(self, seconds: float) -> None:
        """Count a duration; a bound belongs to the bucket below it."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds
        if self._export is not None:
            self._export(seconds, self.attributes)


class Histogram:
    """Durations by labels."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._series: dict[tuple[str, ...], Series] = {}
        self.export: ExportDuration | None = None
        """Set at the start, if durations are also sent elsewhere."""

    def series(self, labels: tuple[str, ...]) -> Series:
        """Return the series with these labels."""
        found = self._series.get(labels)
        if found is not None:
            return found
        if len(self._series) >= _MAX_SERIES:
            labels = (_OTHER,) * len(labels)
        names = self._metric.labels
        attributes = {name: value for name, value in zip(names, labels, strict=True) if value}
        return self._series.setdefault(labels, Series(attributes, self.export))

    def read(self) -> dict[tuple[str, ...], Series]:
        """Return all series by their labels."""
        return self._series.copy()


class Counter:
    """Counts by labels."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, labels: tuple[str, ...]) -> None:
        """Count one more."""
        counts = self._counts
        try:
            counts[labels] += 1
        except KeyError:
            if len(counts) >= _MAX_SERIES:
                labels = (_OTHER,) * len(labels)
            counts[labels] = counts.get(labels, 0) + 1

    def read(self) -> Iterable[Reading]:
        """Return the counts."""
        return self._counts.copy().items()


class MetricValues:
    """The values of all metrics of one server; some are counted here, others are read when they are needed."""

    def __init__(self) -> None:
        self.metrics: list[Metric] = []
        self.histograms: dict[str, Histogram] = {}
        self.on_add: Callable[[Metric], object] | None = None
        """Called with each metric that is added later, if values are also sent elsewhere."""
        self._readers: dict[str, list[Read]] = {}
        for metric in METRICS:
            self.add(metric)
        self.operations = self.histograms[OPERATION_DURATION.name]
        self.sessions = self.histograms[SESSION_DURATION.name]
        self.queues = self.histograms[QUEUE_DURATION.name]
        self.calls = Counter()
        self.sheds = Counter()
        self.add_reader("axolotl.calls", self.calls.read)
        self.add_reader("axolotl.calls.shed", self.sheds.read)

    def add(self, metric: Metric) -> None:
        """Show a metric, whose values are read or, in `histograms`, recorded."""
        self.metrics.append(metric)
        if metric.kind == "histogram":
            self.histograms[metric.name] = Histogram(metric)
        if self.on_add is not None:
            self.on_add(metric)

    def add_reader(self, metric: str, read: Read) -> None:
        """Add a function that reads values of a counter or gauge."""
        self._readers.setdefault(metric, []).append(read)

    def add_number(self, metric: str, read: Callable[[], int]) -> None:
        """Add a function that reads a counter or gauge without labels."""
        self.add_reader(metric, lambda: [((), read())])

    def read(self, metric: str) -> list[Reading]:
        """Read a counter or gauge."""
        return [reading for read in self._readers.get(metric, ()) for reading in read()]


def read_parts(
    values: MetricValues,
    *,
    inflight: RunningCalls,
    subscriptions: Subscriptions,
    threads: ThreadRunner,
    processes: ProcessRunner,
    layers: Sequence[Layer],
    watchdog: Watchdog | None,
) -> None:
    """Let metrics read the state of the parts of a server."""
    zombies = inflight.zombies

    def waiting() -> int:
        limited = (layer for layer in layers if isinstance(layer, ConcurrencyLayer))
        return sum(bulkhead.waiting for layer in limited for bulkhead in tuple(layer.bulkheads))

    def open_circuits() -> Iterable[Reading]:
        breakers = (layer for layer in layers if isinstance(layer, BreakerLayer))
        circuits = [circuit for layer in breakers for circuit in tuple(layer.circuits.items())]
        return [((name,), circuit.state == "open") for name, circuit in circuits]

    values.add_number("axolotl.calls.in_flight", inflight.__len__)
    values.add_number("axolotl.calls.waiting", waiting)
    values.add_number("axolotl.zombies.left", lambda: zombies.total)
    values.add_number("axolotl.threads.waiting", lambda: threads.waiting)
    values.add_number("axolotl.processes", lambda: processes.processes)
    values.add_number("axolotl.processes.killed", lambda: processes.killed)
    values.add_number("axolotl.sessions", lambda: subscriptions.connections)
    values.add_number("axolotl.subscriptions", lambda: subscriptions.listeners)
    values.add_reader("axolotl.calls.shed", lambda: [(("in_flight",), inflight.refused)])
    values.add_reader("axolotl.zombies", lambda: [((name,), count) for name, count in zombies.by_name().items()])
    values.add_reader("axolotl.circuits.open", open_circuits)
    if watchdog is not None:
        values.add_number("axolotl.event_loop.stalls", lambda: watchdog.stalls)
