"""A call over HTTP in the stateless era."""

from benchmarks.contenders import AXOLOTL, FASTMCP, FLOOR, MCP
from benchmarks.http_load import stateless_calls
from benchmarks.model import Comparison, Metric, Scenario, Series

NAME = "http stateless call"

SCENARIO = Scenario(
    name=NAME,
    group="HTTP",
    summary="tools/call of revision 2026-07-28, with its mirrored headers",
    metrics=(
        Metric(
            "cpu",
            NAME,
            "µs CPU/call",
            {
                "axolotl": Comparison("floor", at_most=0.9),
                "mcp": Comparison("axolotl", at_least=12),
                "mcp, tuned": Comparison("axolotl"),
                "fastmcp": Comparison("axolotl", at_least=25),
                "fastmcp, tuned": Comparison("axolotl"),
            },
        ),
    ),
    series=(
        Series("floor", stateless_calls(FLOOR, 3000)),
        Series("axolotl", stateless_calls(AXOLOTL, 3000)),
        Series("mcp", stateless_calls(MCP, 400)),
        Series("mcp, tuned", stateless_calls(MCP, 400, tuned=True)),
        Series("fastmcp", stateless_calls(FASTMCP, 160)),
        Series("fastmcp, tuned", stateless_calls(FASTMCP, 160, tuned=True)),
    ),
)
