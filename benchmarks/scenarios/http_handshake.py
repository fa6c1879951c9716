"""A call over HTTP in a session of the handshake era."""

from benchmarks.contenders import AXOLOTL, FASTMCP, MCP
from benchmarks.http_load import session_calls, stateless_calls
from benchmarks.model import Comparison, Metric, Scenario, Series

NAME = "http handshake call"

SCENARIO = Scenario(
    name=NAME,
    summary="tools/call in a session that began with initialize",
    metrics=(
        Metric(
            "cpu",
            NAME,
            "µs CPU/call",
            {
                "axolotl": Comparison("axolotl, stateless", at_most=1.2),
                "mcp": Comparison("axolotl"),
                "fastmcp": Comparison("axolotl"),
            },
        ),
    ),
    series=(
        Series("axolotl, stateless", stateless_calls(AXOLOTL, 3000)),
        Series("axolotl", session_calls(AXOLOTL, 3000)),
        Series("mcp", session_calls(MCP, 400)),
        Series("fastmcp", session_calls(FASTMCP, 160)),
    ),
)
