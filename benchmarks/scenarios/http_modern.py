"""A call of the stateless revision over HTTP."""

from benchmarks.contenders import AXOLOTL, FASTMCP, FLOOR, MCP
from benchmarks.http_load import modern_calls
from benchmarks.model import Comparison, Metric, Scenario, Series

NAME = "http modern call"

SCENARIO = Scenario(
    name=NAME,
    summary="tools/call of the stateless revision, with its mirrored headers",
    metrics=(
        Metric(
            "cpu",
            NAME,
            "µs CPU/call",
            {
                "axolotl": Comparison("floor", at_most=1.5),
                "mcp": Comparison("axolotl", at_least=12),
                "mcp, tuned": Comparison("axolotl"),
                "fastmcp": Comparison("axolotl", at_least=25),
                "fastmcp, tuned": Comparison("axolotl"),
            },
        ),
    ),
    series=(
        Series("floor", modern_calls(FLOOR, 3000)),
        Series("axolotl", modern_calls(AXOLOTL, 3000)),
        Series("mcp", modern_calls(MCP, 400)),
        Series("mcp, tuned", modern_calls(MCP, 400, tuned=True)),
        Series("fastmcp", modern_calls(FASTMCP, 160)),
        Series("fastmcp, tuned", modern_calls(FASTMCP, 160, tuned=True)),
    ),
)
