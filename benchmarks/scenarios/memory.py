"""The resident memory of a server."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks import wire
from benchmarks.contenders import AXOLOTL, FASTMCP, MCP, Contender
from benchmarks.http_load import http_server
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.stdio_load import stdio_server
from benchmarks.usage import resident_bytes

NAME = "memory"
_CALLS = 1000
_MEGABYTE = 1 << 20
_COMPARISONS = {"axolotl": Comparison("mcp", at_most=0.65), "fastmcp": Comparison("mcp")}


def _resident(contender: Contender) -> Callable[[Scale], AbstractContextManager[Measure]]:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        yield lambda: {**_over_stdio(contender), **_over_http(contender)}

    return opened


def _over_stdio(contender: Contender) -> Sample:
    with stdio_server(contender) as server:
        started = resident_bytes(server.pid)
        for request in wire.stdio_calls(1, _CALLS):
            server.client.round_trip(request)
        return {"stdio": started / _MEGABYTE, "stdio used": resident_bytes(server.pid) / _MEGABYTE}


def _over_http(contender: Contender) -> Sample:
    with http_server(contender, "stateless") as server:
        started = resident_bytes(server.pid)
        server.client.run([wire.stateless_calls(server.port, 1, _CALLS)], wire.ANSWER)
        return {"http": started / _MEGABYTE, "http used": resident_bytes(server.pid) / _MEGABYTE}


SCENARIO = Scenario(
    name=NAME,
    group="memory",
    summary="resident memory after the start and after 1,000 calls, over stdio and HTTP",
    metrics=(
        Metric("stdio", f"{NAME} after start, stdio", "MiB", _COMPARISONS),
        Metric("stdio used", f"{NAME} after 1000 calls, stdio", "MiB", _COMPARISONS),
        Metric("http", f"{NAME} after start, HTTP", "MiB", _COMPARISONS),
        Metric("http used", f"{NAME} after 1000 calls, HTTP", "MiB", _COMPARISONS),
    ),
    series=(
        Series("axolotl", _resident(AXOLOTL)),
        Series("mcp", _resident(MCP)),
        Series("fastmcp", _resident(FASTMCP)),
    ),
    rounds=3,
)
