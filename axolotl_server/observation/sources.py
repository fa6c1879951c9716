"""Where the numbers are that a server keeps anyway."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from axolotl_core.layer import ILayer
from axolotl_server.execution.processes import ProcessRunner
from axolotl_server.execution.threads import ThreadRunner
from axolotl_server.inflight import InFlight
from axolotl_server.layers.breaker import BreakerLayer
from axolotl_server.layers.concurrency import ConcurrencyLayer
from axolotl_server.observation.numbers import Numbers, Reading
from axolotl_server.subscriptions import Subscriptions
from axolotl_server.tasks.store import TaskStore
from axolotl_server.watchdog import Watchdog

__all__ = ["Sources"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The parts of a server that count something."""

    inflight: InFlight
    subscriptions: Subscriptions
    tasks: TaskStore
    threads: ThreadRunner
    processes: ProcessRunner
    layers: Sequence[ILayer]

    def feed(self, numbers: Numbers, watchdog: Watchdog | None) -> None:
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
