"""The registration of 1,000 typed tools."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.contenders import AXOLOTL, FASTMCP, MCP, Contender
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.processes import finished

NAME = "register 1000 tools"


def _registers(contender: Contender, module: str) -> Callable[[Scale], AbstractContextManager[Measure]]:
    def measure() -> Sample:
        return {"cpu": float(finished([contender.python, "-m", f"benchmarks.registration.{module}"])) * 1e3}

    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        yield measure

    return opened


SCENARIO = Scenario(
    name=NAME,
    group="growth",
    summary="from 1,000 typed functions to a server that is ready, in one process",
    metrics=(
        Metric(
            "cpu",
            NAME,
            "ms CPU",
            {"axolotl": Comparison("mcp", at_most=0.2), "fastmcp": Comparison("mcp")},
        ),
    ),
    series=(
        Series("axolotl", _registers(AXOLOTL, "axolotl_server")),
        Series("mcp", _registers(MCP, "mcp_peer")),
        Series("fastmcp", _registers(FASTMCP, "fastmcp_peer")),
    ),
    rounds=5,
)
