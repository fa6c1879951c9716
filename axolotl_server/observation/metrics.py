"""Every metric, once: its name, what it means, and the labels that it has."""

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["BUCKETS", "METRICS", "OPERATION_DURATION", "QUEUE_DURATION", "SESSION_DURATION", "UNKNOWN", "Metric"]

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
