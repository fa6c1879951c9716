"""The time from starting a server process to its first response."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.contenders import AXOLOTL, FASTMCP, MCP, Contender
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.stdio_load import stdio_server
from benchmarks.usage import cpu_seconds

NAME = "start"


def _starts(contender: Contender) -> Callable[[Scale], AbstractContextManager[Measure]]:
    def measure() -> Sample:
        begin = time.perf_counter()
        with stdio_server(contender) as server:
            elapsed = time.perf_counter() - begin
            return {"wall": elapsed * 1e3, "cpu": cpu_seconds(server.pid) * 1e3}

    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        measure()  # compiles the bytecode and fills the page cache
        yield measure

    return opened


SCENARIO = Scenario(
    name=NAME,
    group="start",
    summary="from starting the process to the response to initialize over stdio",
    metrics=(
        Metric("wall", NAME, "ms", {"axolotl": Comparison("mcp", at_most=0.5), "fastmcp": Comparison("mcp")}),
        Metric(
            "cpu", f"{NAME}, CPU", "ms CPU", {"axolotl": Comparison("mcp", at_most=0.5), "fastmcp": Comparison("mcp")}
        ),
    ),
    series=(
        Series("axolotl", _starts(AXOLOTL)),
        Series("mcp", _starts(MCP)),
        Series("fastmcp", _starts(FASTMCP)),
    ),
    rounds=7,
)
