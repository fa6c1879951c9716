"""How long a caller waits at a deadline of half a second, when the tool does not keep it."""

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.contenders import AXOLOTL, FASTMCP, MCP
from benchmarks.model import Comparison, Measure, Metric, Scale, Scenario, Series
from benchmarks.servers.slow_functions import DEADLINE_SECONDS
from benchmarks.slow_load import SLOW_CALLS, slow_calls

NAME = "deadline"
_KEPT = 1.1
"""A tenth of the half second are the 50 ms within which an answer is promised."""


@contextmanager
def _deadline(scale: Scale) -> Iterator[Measure]:
    yield lambda: dict.fromkeys(("block", "swallow", "behind"), DEADLINE_SECONDS)


def _metric(key: str, title: str) -> Metric:
    comparisons = {
        "axolotl": Comparison("deadline", at_most=_KEPT),
        "mcp": Comparison("axolotl"),
        "fastmcp": Comparison("axolotl"),
    }
    return Metric(key, f"{NAME}, {title}", "s", comparisons)


SCENARIO = Scenario(
    name=NAME,
    summary="time to the answer at a deadline of 0.5 s, of tools that block, swallow, or wait behind 60 others",
    metrics=(
        _metric("block", "blocking tool"),
        _metric("swallow", "swallowing tool"),
        _metric("behind", f"behind {SLOW_CALLS} slow calls"),
    ),
    series=(
        Series("deadline", _deadline),
        Series("axolotl", slow_calls(AXOLOTL)),
        Series("mcp", slow_calls(MCP)),
        Series("fastmcp", slow_calls(FASTMCP)),
    ),
    rounds=3,
)
