"""Calls with long arguments and long results."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks import wire
from benchmarks.contenders import AXOLOTL, FASTMCP, FLOOR, MCP, Contender
from benchmarks.http_load import CONNECTIONS, HttpServer, http_server
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series
from benchmarks.usage import cpu_seconds

NAME = "long texts"
_SIZES = {"1 KB": 1_000, "100 KB": 100_000, "1 MB": 1_000_000}
_CALLS = {"1 KB": 800, "100 KB": 160, "1 MB": 16}
"""The calls of a round, a multiple of the connections."""
_SENTENCE = 'A text: with "quotes", {braces} and a line break.\n'
_COMPARISONS = {
    "axolotl": Comparison("floor"),
    "mcp, tuned": Comparison("axolotl"),
    "fastmcp, tuned": Comparison("axolotl"),
}


def _sized(contender: Contender) -> Callable[[Scale], AbstractContextManager[Measure]]:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        with http_server(contender, "stateless", tools="sized", tuned=True) as server:

            def measure() -> Sample:
                counts = {title: max(CONNECTIONS, round(count * scale.share)) for title, count in _CALLS.items()}
                arguments = {f"argument {title}": _cost(server, _SIZES[title], 0, n) for title, n in counts.items()}
                results = {f"result {title}": _cost(server, 0, _SIZES[title], n) for title, n in counts.items()}
                return {**arguments, **results}

            measure()
            yield measure

    return opened


def _cost(server: HttpServer, length: int, size: int, calls: int) -> float:
    """Return the CPU time of a call with a text of some length and a result of some size."""
    text = (_SENTENCE * (length // len(_SENTENCE) + 1))[:length]
    request = wire.stateless_call(server.port, "sized", {"text": text, "size": size})
    batches = [[request] * (calls // CONNECTIONS)] * CONNECTIONS
    server.client.connect()
    begin = cpu_seconds(server.pid)
    server.client.run(batches, b'"text":"%d ' % length)
    return (cpu_seconds(server.pid) - begin) * 1e6 / (calls // CONNECTIONS * CONNECTIONS)


SCENARIO = Scenario(
    name=NAME,
    group="growth",
    summary="calls with arguments and with results of 1 KB, 100 KB and 1 MB",
    metrics=tuple(
        Metric(f"{part} {title}", f"{part} of {title}", "µs CPU/call", _COMPARISONS)
        for part in ("argument", "result")
        for title in _SIZES
    ),
    series=(
        Series("floor", _sized(FLOOR)),
        Series("axolotl", _sized(AXOLOTL)),
        Series("mcp, tuned", _sized(MCP)),
        Series("fastmcp, tuned", _sized(FASTMCP)),
    ),
    rounds=7,
)
