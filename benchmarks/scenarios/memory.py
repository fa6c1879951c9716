"""The resident memory of a server."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks import wire
from benchmarks.contenders import AXOLOTL, FASTMCP, MCP, Contender
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.stdio_load import stdio_server
from benchmarks.usage import resident_bytes

NAME = "memory"
_CALLS = 1000
_MEGABYTE = 1 << 20
_COMPARISONS = {"axolotl": Comparison("mcp", at_most=1), "fastmcp": Comparison("mcp")}


def _resident(contender: Contender) -> Callable[[Scale], AbstractContextManager[Measure]]:
    def measure() -> Sample:
        with stdio_server(contender) as server:
            started = resident_bytes(server.pid)
            for request in wire.stdio_calls(1, _CALLS):
                server.client.round_trip(request)
            return {"started": started / _MEGABYTE, "used": resident_bytes(server.pid) / _MEGABYTE}

    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        contender.require()
        yield measure

    return opened


SCENARIO = Scenario(
    name=NAME,
    summary="resident memory after the start and after 1,000 calls over stdio",
    metrics=(
        Metric("started", f"{NAME} after start", "MiB", _COMPARISONS),
        Metric("used", f"{NAME} after 1000 calls", "MiB", _COMPARISONS),
    ),
    series=(
        Series("axolotl", _resident(AXOLOTL)),
        Series("mcp", _resident(MCP)),
        Series("fastmcp", _resident(FASTMCP)),
    ),
    rounds=3,
)
