"""The memory and CPU time of idle `subscriptions/listen` streams.

The CPU time is measured over a whole keep-alive interval, because idle streams cost little between two comments.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks import wire
from benchmarks.contenders import AXOLOTL, FLOOR, MCP, Contender, Launch, Tools
from benchmarks.errors import BenchmarkError
from benchmarks.model import Comparison, Measure, Metric, Sample, Scale, Scenario, Series, goal
from benchmarks.processes import free_port, listening
from benchmarks.servers.floor_variants import KEEP_ALIVE_SECONDS
from benchmarks.usage import cpu_seconds, resident_bytes

NAME = "idle streams"
_STREAMS = 1500
_MCP_STREAMS = 900
"""This server closes further streams when 1,000 are open."""
_QUICK_STREAMS = 500
_EXTRAPOLATED = 10_000
_IDLE_SECONDS = 3.0
_REPLY_SECONDS = 30.0
_RETRY_SECONDS = 0.2
_OK = b"HTTP/1.1 200"
_UNAVAILABLE = b"HTTP/1.1 503"
_WARM_STREAMS = 10
"""Opened and closed before, so that everything has been used once. Few, because others reuse their memory."""
_AT_ONCE = 50
_KILOBYTE = 1 << 10
_GOAL_KILOBYTES = 16.0
_GOAL_PERCENT = 3.0
_ENVIRONMENT = {"AXOLOTL_SUBSCRIPTIONS__MAXIMUM": str(2 * _STREAMS)}
_COMPARISONS = {
    "axolotl": Comparison("goal", at_most=1),
    "floor": Comparison("axolotl"),
    "mcp, tuned": Comparison("axolotl"),
}

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def _idle(contender: Contender) -> Callable[[Scale], AbstractContextManager[Measure]]:
    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        tools: Tools = "stream" if contender is FLOOR else "add"
        most = _MCP_STREAMS if contender is MCP else _STREAMS
        count = most if scale.share == 1 else _QUICK_STREAMS

        def measure() -> Sample:
            port = free_port()
            command = contender.command(Launch("stateless", port, tools, tuned=True))
            with listening(command, port, _ENVIRONMENT) as process:
                return asyncio.run(_sample(process.pid, port, count))

        yield measure

    return opened


async def _sample(pid: int, port: int, count: int) -> Sample:
    """Open streams on a new server, and compare its memory and CPU time with those before."""
    await _close(await _open(port, _WARM_STREAMS))
    before, idle = resident_bytes(pid), await _share_of_core(pid, _IDLE_SECONDS)
    streams = await _open(port, count)
    try:
        memory = (resident_bytes(pid) - before) / count
        each = max(0.0, await _share_of_core(pid, KEEP_ALIVE_SECONDS) - idle) / count
    finally:
        await _close(streams)
    return {"memory": memory / _KILOBYTE, "cpu": (idle + each * _EXTRAPOLATED) * 100}


async def _share_of_core(pid: int, seconds: float) -> float:
    spent, begin = cpu_seconds(pid), time.perf_counter()
    await asyncio.sleep(seconds)
    return (cpu_seconds(pid) - spent) / (time.perf_counter() - begin)


async def _open(port: int, count: int) -> list[Stream]:
    streams: list[Stream] = []
    try:
        while len(streams) < count:
            streams += await asyncio.gather(*(_stream(port) for _ in range(min(_AT_ONCE, count - len(streams)))))
    except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
        await _close(streams)
        raise BenchmarkError(f"stream {len(streams)} was not opened: {error!r}") from error
    return streams


async def _stream(port: int) -> Stream:
    """Open a stream; a server that has to do too much at once, as on a busy machine, is asked again."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(wire.stateless_listen(port))
        async with asyncio.timeout(_REPLY_SECONDS):
            status = await reader.readuntil(b"\r\n")
            if status.startswith(_OK):
                await reader.readuntil(b"acknowledged")
                return reader, writer
        writer.close()
        if not status.startswith(_UNAVAILABLE):
            raise BenchmarkError(f"a stream was refused: {status.decode().strip()}")
        await asyncio.sleep(_RETRY_SECONDS)


async def _close(streams: list[Stream]) -> None:
    for _, writer in streams:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for _, writer in streams), return_exceptions=True)


SCENARIO = Scenario(
    name=NAME,
    group="streams",
    summary="memory of an idle subscriptions/listen stream, and CPU of 10,000, extrapolated from 1,500",
    metrics=(
        Metric("memory", f"{NAME}, memory", "KiB/stream", _COMPARISONS),
        Metric("cpu", f"{NAME}, CPU of 10000", "% of a core", _COMPARISONS),
    ),
    series=(
        goal(memory=_GOAL_KILOBYTES, cpu=_GOAL_PERCENT),
        Series("floor", _idle(FLOOR)),
        Series("axolotl", _idle(AXOLOTL)),
        Series("mcp, tuned", _idle(MCP)),
    ),
    rounds=3,
)
