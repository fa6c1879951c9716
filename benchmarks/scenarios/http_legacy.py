"""A call inside a session of the handshake revisions over HTTP."""

from benchmarks.contenders import AXOLOTL, FASTMCP, MCP
from benchmarks.http_load import modern_calls, session_calls
from benchmarks.model import Comparison, Metric, Scenario, Series

NAME = "http legacy session call"

SCENARIO = Scenario(
    name=NAME,
    summary="tools/call in a session that was opened with initialize",
    metrics=(
        Metric(
            "cpu",
            NAME,
            "µs CPU/call",
            {
                "axolotl": Comparison("axolotl, modern", at_most=1.2),
                "mcp": Comparison("axolotl"),
                "fastmcp": Comparison("axolotl"),
            },
        ),
    ),
    series=(
        Series("axolotl, modern", modern_calls(AXOLOTL, 3000)),
        Series("axolotl", session_calls(AXOLOTL, 3000)),
        Series("mcp", session_calls(MCP, 400)),
        Series("fastmcp", session_calls(FASTMCP, 160)),
    ),
)
