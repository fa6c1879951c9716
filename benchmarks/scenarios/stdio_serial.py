"""Sequential calls over stdio."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from statistics import median

from benchmarks import wire
from benchmarks.contenders import AXOLOTL, FASTMCP, MCP, Contender
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.stdio_load import stdio_server
from benchmarks.usage import cpu_seconds

NAME = "stdio serial"


def _serial(contender: Contender, calls: int) -> Callable[[Scale], AbstractContextManager[Measure]]:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        requests = wire.stdio_calls(1, scale.calls(calls))
        with stdio_server(contender) as server:

            def measure() -> Sample:
                begin = cpu_seconds(server.pid)
                trips = [server.client.round_trip(request) for request in requests]
                spent = cpu_seconds(server.pid) - begin
                return {"trip": median(trips) * 1e6, "cpu": spent * 1e6 / len(requests)}

            measure()
            yield measure

    return opened


SCENARIO = Scenario(
    name=NAME,
    group="stdio",
    summary="one call at a time, median of the round trips",
    metrics=(
        Metric(
            "trip",
            NAME,
            "µs/round trip",
            {"axolotl": Comparison("mcp", at_most=1 / 6), "fastmcp": Comparison("mcp")},
        ),
        Metric(
            "cpu",
            f"{NAME}, CPU",
            "µs CPU/call",
            {"axolotl": Comparison("mcp"), "fastmcp": Comparison("mcp")},
        ),
    ),
    series=(
        Series("axolotl", _serial(AXOLOTL, 1000)),
        Series("mcp", _serial(MCP, 150)),
        Series("fastmcp", _serial(FASTMCP, 150)),
    ),
)
