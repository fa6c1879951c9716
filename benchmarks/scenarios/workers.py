"""The throughput of one address with one worker and with two.

The tool computes for five milliseconds, so that the server is the bottleneck and not the client: with two busy workers
on two cores, the client takes its time from them. How much it takes is a result, too.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from urllib.parse import urlsplit

from benchmarks import wire
from benchmarks.http_client import HttpClient
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.soak.fleet import fleet
from benchmarks.usage import cpu_seconds

NAME = "workers"
_CONNECTIONS = 6
"""Enough that no worker waits for work, and few, so that both end at nearly the same time."""
_CALLS = 600
_TARGET = "benchmarks.servers.axolotl_busy:Container"
_ONE = "axolotl, 1 worker"
_TWO = "axolotl, 2 workers"


class _Load:
    """Sends calls over all connections at once."""

    def __init__(self, pid: int, port: int, calls: int) -> None:
        self._pid = pid
        self._port = port
        self._calls = max(2 * _CONNECTIONS, calls)
        self.client = HttpClient(port, _CONNECTIONS)

    def measure(self) -> Sample:
        """Run one round on new connections, which are distributed over the workers."""
        requests = wire.stateless_calls(self._port, 1, self._calls)
        self.client.connect()
        spent, own, began = cpu_seconds(self._pid), time.process_time(), time.perf_counter()
        self.client.run_shared(requests, wire.ANSWER)
        seconds, own, spent = time.perf_counter() - began, time.process_time() - own, cpu_seconds(self._pid) - spent
        return {"rate": self._calls / seconds, "cpu": spent * 1e6 / self._calls, "client": own / seconds * 100}


def _served_by(workers: int) -> Callable[[Scale], AbstractContextManager[Measure]]:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        with fleet(_TARGET, workers) as server:
            load = _Load(server.pid, urlsplit(server.url).port or 0, scale.calls(_CALLS))
            try:
                load.measure()
                yield load.measure
            finally:
                load.client.close()

    return opened


SCENARIO = Scenario(
    name=NAME,
    group="workers",
    summary="calls per second of a tool that computes for 5 ms, with one worker and with two",
    metrics=(
        Metric("rate", NAME, "calls/s", {_TWO: Comparison(_ONE, at_least=1.6)}),
        Metric("cpu", f"{NAME}, CPU", "µs CPU/call", {_TWO: Comparison(_ONE)}),
        Metric("client", f"{NAME}, CPU of the client", "% of a core"),
    ),
    series=(Series(_ONE, _served_by(1)), Series(_TWO, _served_by(2))),
)
