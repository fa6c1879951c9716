"""Many concurrent calls over stdio."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks import wire
from benchmarks.contenders import AXOLOTL, FASTMCP, MCP, Contender
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.stdio_load import stdio_server
from benchmarks.usage import cpu_seconds

NAME = "stdio pipelined"


def _pipelined(contender: Contender, calls: int) -> Callable[[Scale], AbstractContextManager[Measure]]:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        requests = wire.stdio_calls(1, scale.calls(calls))
        with stdio_server(contender) as server:

            def measure() -> Sample:
                begin = cpu_seconds(server.pid)
                elapsed = server.client.pipeline(requests)
                spent = cpu_seconds(server.pid) - begin
                return {"rate": len(requests) / elapsed, "cpu": spent * 1e6 / len(requests)}

            measure()
            yield measure

    return opened


SCENARIO = Scenario(
    name=NAME,
    group="stdio",
    summary="calls written in large chunks, replies read as they arrive",
    metrics=(
        Metric(
            "rate",
            NAME,
            "replies/s",
            {"axolotl": Comparison("mcp", at_least=50), "fastmcp": Comparison("mcp")},
        ),
        Metric(
            "cpu",
            f"{NAME}, CPU",
            "µs CPU/call",
            {"mcp": Comparison("axolotl", at_least=40), "fastmcp": Comparison("axolotl")},
        ),
    ),
    series=(
        Series("axolotl", _pipelined(AXOLOTL, 10000)),
        Series("mcp", _pipelined(MCP, 500)),
        Series("fastmcp", _pipelined(FASTMCP, 200)),
    ),
)
