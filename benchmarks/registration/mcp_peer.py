"""The time that the official SDK takes to register many typed functions."""

from mcp.server import MCPServer

from benchmarks.registration.stopwatch import timed
from benchmarks.servers.functions import Function


def register(functions: list[Function]) -> None:
    """Create a server that is ready to serve the functions."""
    server = MCPServer("benchmark", log_level="ERROR")
    for function in functions:
        server.add_tool(function)
    server.streamable_http_app(json_response=True, stateless_http=True)


if __name__ == "__main__":
    timed(register)
