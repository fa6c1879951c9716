"""The listing of 1,000 tools."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks import wire
from benchmarks.contenders import AXOLOTL, FASTMCP, MCP, Contender
from benchmarks.errors import BenchmarkError
from benchmarks.http_load import HttpServer, http_server
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.servers.functions import MANY
from benchmarks.usage import cpu_seconds

NAME = "list 1000 tools"
_EXPECTED = b'"tools":['


def _lists(contender: Contender, listings: int) -> Callable[[Scale], AbstractContextManager[Measure]]:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        count = max(3, round(listings * scale.share))
        with http_server(contender, "stateless", tools="thousand", tuned=True) as server:
            requests = _pages(server) * count

            def measure() -> Sample:
                server.client.connect()
                begin = cpu_seconds(server.pid)
                server.client.run([requests], _EXPECTED)
                return {"cpu": (cpu_seconds(server.pid) - begin) * 1e6 / count}

            measure()
            yield measure

    return opened


def _pages(server: HttpServer) -> list[bytes]:
    """Fetch the listing once and return the requests for all of its pages."""
    requests: list[bytes] = []
    names: set[str] = set()
    cursor: str | None = None
    while cursor is not None or not requests:
        requests.append(wire.stateless_list(server.port, cursor))
        answer = json.loads(server.client.exchange(requests[-1]).body)
        if "result" not in answer:
            raise BenchmarkError(f"the server does not list its tools: {answer}")
        names.update(tool["name"] for tool in answer["result"]["tools"])
        cursor = answer["result"].get("nextCursor")
    if len(names) != MANY["thousand"]:
        raise BenchmarkError(f"the server lists {len(names)} of {MANY['thousand']} tools")
    return requests


SCENARIO = Scenario(
    name=NAME,
    group="growth",
    summary="one complete tools/list over HTTP, all pages, on a server with 1,000 tools",
    metrics=(
        Metric(
            "cpu",
            NAME,
            "µs CPU/listing",
            {"mcp": Comparison("axolotl", at_least=100), "fastmcp": Comparison("axolotl")},
        ),
    ),
    series=(
        Series("axolotl", _lists(AXOLOTL, 300)),
        Series("mcp", _lists(MCP, 5)),
        Series("fastmcp", _lists(FASTMCP, 3)),
    ),
    rounds=5,
)
