"""A call on a server with 1,000 or 10,000 tools, compared with a server with one tool."""

from benchmarks.contenders import AXOLOTL, FASTMCP, MCP
from benchmarks.http_load import stateless_calls
from benchmarks.model import Comparison, Metric, Scenario, Series

NAME = "call with many tools"

SCENARIO = Scenario(
    name=NAME,
    group="growth",
    summary="a stateless call on a server with 1,000 or 10,000 tools, compared with a server with one tool",
    metrics=(
        Metric(
            "cpu",
            NAME,
            "µs CPU/call",
            {
                "axolotl, 1000 tools": Comparison("axolotl, 1 tool", at_most=1.1),
                "axolotl, 10000 tools": Comparison("axolotl, 1 tool", at_most=1.1),
                "mcp, 1000 tools": Comparison("mcp, 1 tool"),
                "mcp, 10000 tools": Comparison("mcp, 1 tool"),
                "fastmcp, 1000 tools": Comparison("fastmcp, 1 tool"),
            },
        ),
    ),
    series=(
        Series("axolotl, 1 tool", stateless_calls(AXOLOTL, 3000)),
        Series("axolotl, 1000 tools", stateless_calls(AXOLOTL, 3000, tools="thousand")),
        Series("axolotl, 10000 tools", stateless_calls(AXOLOTL, 3000, tools="ten_thousand")),
        Series("mcp, 1 tool", stateless_calls(MCP, 400, tuned=True)),
        Series("mcp, 1000 tools", stateless_calls(MCP, 400, tools="thousand", tuned=True)),
        Series("mcp, 10000 tools", stateless_calls(MCP, 400, tools="ten_thousand", tuned=True)),
        Series("fastmcp, 1 tool", stateless_calls(FASTMCP, 160, tuned=True)),
        Series("fastmcp, 1000 tools", stateless_calls(FASTMCP, 16, tools="thousand", tuned=True)),
    ),
    rounds=9,
)
