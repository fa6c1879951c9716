"""The time that FastMCP takes to register many typed functions."""

from fastmcp import FastMCP

from benchmarks.registration.stopwatch import timed
from benchmarks.servers.functions import Function


def register(functions: list[Function]) -> None:
    """Create a server that is ready to serve the functions."""
    server = FastMCP("benchmark")
    for function in functions:
        server.add_tool(function)
    server.http_app(json_response=True, stateless_http=True)


if __name__ == "__main__":
    timed(register)
