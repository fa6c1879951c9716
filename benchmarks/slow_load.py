"""Response times of slow tools over HTTP."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks import wire
from benchmarks.contenders import Contender, Launch
from benchmarks.errors import BenchmarkError
from benchmarks.http_client import Connection
from benchmarks.model import Measure, Sample, Scale
from benchmarks.processes import free_port, listening
from benchmarks.servers.slow_functions import QUICK

SLOW_CALLS = 60
_REPLY_SECONDS = 120.0


def slow_calls(contender: Contender) -> Callable[[Scale], AbstractContextManager[Measure]]:
    """Return a series of response times: a blocking tool, one that ignores cancellation, and one behind slow calls."""

    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        port = free_port()
        with listening(contender.command(Launch("stateless", port, "slow", tuned=True)), port):
            asyncio.run(_answer_seconds(port, "quick"))

            def measure() -> Sample:
                return asyncio.run(_sample(port))

            yield measure

    return opened


async def _sample(port: int) -> Sample:
    return {
        "block": await _answer_seconds(port, "block"),
        "swallow": await _answer_seconds(port, "swallow"),
        "behind": await _seconds_behind(port),
    }


async def _seconds_behind(port: int) -> float:
    """Measure a quick call that is sent after many slow ones, then wait for those."""
    slow = [asyncio.ensure_future(_answer_seconds(port, "block")) for _ in range(SLOW_CALLS)]
    await asyncio.sleep(0.1)
    seconds = await _answer_seconds(port, "quick")
    await asyncio.gather(*slow)
    return seconds


async def _answer_seconds(port: int, name: str) -> float:
    """Measure one call on a separate connection; the reply of a quick one is checked."""
    try:
        _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    except OSError as error:
        raise BenchmarkError(f"the server does not accept connections: {error}") from error
    begin = time.perf_counter()
    expected = QUICK.encode() if name == "quick" else b""
    answered = connection.send_all([wire.stateless_call(port, name)], expected)
    try:
        await asyncio.wait_for(answered, _REPLY_SECONDS)
    except TimeoutError as error:
        raise BenchmarkError(f"no reply from {name} in time") from error
    finally:
        connection.close()
    return time.perf_counter() - begin
