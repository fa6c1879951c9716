"""The time until callers are answered when tools exceed a timeout of 0.5 s."""

from benchmarks.contenders import AXOLOTL, FASTMCP, MCP
from benchmarks.model import Comparison, Metric, Scenario, Series, goal
from benchmarks.servers.slow_functions import DEADLINE_SECONDS
from benchmarks.slow_load import SLOW_CALLS, slow_calls

NAME = "deadline"
_KEPT = 1.1
"""The server promises a response within 50 ms after the deadline, which is a tenth of the timeout."""


def _metric(key: str, title: str) -> Metric:
    comparisons = {
        "axolotl": Comparison("goal", at_most=_KEPT),
        "mcp": Comparison("axolotl"),
        "fastmcp": Comparison("axolotl"),
    }
    return Metric(key, f"{NAME}, {title}", "s", comparisons)


SCENARIO = Scenario(
    name=NAME,
    group="overload",
    summary="time to the response with a timeout of 0.5 s: blocking, ignoring cancellation, behind 60 slow calls",
    metrics=(
        _metric("block", "blocking tool"),
        _metric("swallow", "swallowing tool"),
        _metric("behind", f"behind {SLOW_CALLS} slow calls"),
    ),
    series=(
        goal(block=DEADLINE_SECONDS, swallow=DEADLINE_SECONDS, behind=DEADLINE_SECONDS),
        Series("axolotl", slow_calls(AXOLOTL)),
        Series("mcp", slow_calls(MCP)),
        Series("fastmcp", slow_calls(FASTMCP)),
    ),
    rounds=3,
)
