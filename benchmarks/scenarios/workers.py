"""The throughput of one address with one worker and with two.

The tool computes for a millisecond, so that the server is the bottleneck and not the client.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks import wire
from benchmarks.http_client import HttpClient
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.processes import free_port, listening
from benchmarks.usage import cpu_seconds

NAME = "workers"
_CONNECTIONS = 16
_CALLS = 1000
_COMMAND = ["-m", "axolotl_cli", "serve", "benchmarks.servers.axolotl_busy:Container", "--transport", "http"]
_ONE = "axolotl, 1 worker"
_TWO = "axolotl, 2 workers"


class _Load:
    """Sends calls over all connections at once."""

    def __init__(self, pid: int, port: int, calls: int) -> None:
        self._pid = pid
        self._port = port
        self._each = max(1, calls // _CONNECTIONS)
        self.client = HttpClient(port, _CONNECTIONS)

    def measure(self) -> Sample:
        """Run one round on new connections, which are distributed over the workers."""
        batches = [wire.stateless_calls(self._port, number * self._each, self._each) for number in range(_CONNECTIONS)]
        self.client.connect()
        spent, began = cpu_seconds(self._pid), time.perf_counter()
        self.client.run(batches, wire.ANSWER)
        seconds, spent = time.perf_counter() - began, cpu_seconds(self._pid) - spent
        calls = self._each * _CONNECTIONS
        return {"rate": calls / seconds, "cpu": spent * 1e6 / calls}


def _served_by(workers: int) -> Callable[[Scale], AbstractContextManager[Measure]]:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        port = free_port()
        command = [*_COMMAND, "--port", str(port), "--workers", str(workers)]
        with listening(command, port) as process:
            load = _Load(process.pid, port, scale.calls(_CALLS))
            try:
                load.measure()
                yield load.measure
            finally:
                load.client.close()

    return opened


SCENARIO = Scenario(
    name=NAME,
    summary="calls per second of a tool that computes for a millisecond, with one worker and with two",
    metrics=(
        Metric("rate", NAME, "calls/s", {_TWO: Comparison(_ONE)}),
        Metric("cpu", f"{NAME}, CPU", "µs CPU/call", {_TWO: Comparison(_ONE)}),
    ),
    series=(Series(_ONE, _served_by(1)), Series(_TWO, _served_by(2))),
)
