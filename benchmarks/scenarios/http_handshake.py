"""A call over HTTP in a session of the handshake era."""

from benchmarks.contenders import AXOLOTL, FASTMCP, FLOOR, MCP
from benchmarks.http_load import session_calls, stateless_calls
from benchmarks.model import Comparison, Metric, Scenario, Series

NAME = "http handshake call"

SCENARIO = Scenario(
    name=NAME,
    group="HTTP",
    summary="tools/call in a session that began with initialize",
    metrics=(
        Metric(
            "cpu",
            NAME,
            "µs CPU/call",
            {
                "axolotl": Comparison("floor", at_most=1.0),
                "mcp": Comparison("axolotl"),
                "mcp, tuned": Comparison("axolotl"),
                "fastmcp": Comparison("axolotl"),
                "fastmcp, tuned": Comparison("axolotl"),
            },
        ),
    ),
    series=(
        Series("floor", stateless_calls(FLOOR, 3000)),
        Series("axolotl", session_calls(AXOLOTL, 3000)),
        Series("mcp", session_calls(MCP, 400)),
        Series("mcp, tuned", session_calls(MCP, 400, tuned=True)),
        Series("fastmcp", session_calls(FASTMCP, 160)),
        Series("fastmcp, tuned", session_calls(FASTMCP, 160, tuned=True)),
    ),
)
