"""In-process calls through all layers of a server, measured per call."""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import uvloop

from axolotl_cli.runtime import tune_garbage_collector
from axolotl_server import ServerHost
from benchmarks import wire
from benchmarks.errors import BenchmarkError
from benchmarks.layered import CALLER, Variant
from benchmarks.model import Measure, Sample, Scale
from benchmarks.redis_server import redis_server
from benchmarks.usage import cpu_seconds
from tests.support.peers.memory_transport import MemoryTransport

_BLOCKS = 20
_ONE_KEY = "same"
_QUOTED_CHARACTERS = 300


class LayerRounds:
    """Measures variants side by side: each round runs many short blocks of calls in random order.

    A layer costs less than a machine varies from one second to the next.
    """

    def __init__(self) -> None:
        self._loads: dict[str, _Load] = {}
        self._results: dict[str, Sample | BenchmarkError] = {}
        self._order = random.Random(20260728)

    def calls_of(self, variant: Variant) -> Callable[[Scale], AbstractContextManager[Measure]]:
        """Return a series of sequential calls of a variant."""

        @contextmanager
        def opened(scale: Scale) -> Iterator[Measure]:
            with _served(variant) as load:
                self._loads[variant.name] = load
                yield partial(self._measure, variant.name, max(2, round(_BLOCKS * scale.share)))

        return opened

    def _measure(self, name: str, blocks: int) -> Sample:
        """Return the result of one variant; the first repeated name starts a new round."""
        if name not in self._results:
            self._results = self._round(blocks)
        result = self._results.pop(name)
        if isinstance(result, BenchmarkError):
            raise result
        return result

    def _round(self, blocks: int) -> dict[str, Sample | BenchmarkError]:
        turns = list(self._loads.items()) * blocks
        self._order.shuffle(turns)
        samples: dict[str, list[Sample]] = {name: [] for name in self._loads}
        results: dict[str, Sample | BenchmarkError] = {}
        for name, load in turns:
            try:
                samples[name].append(load.measure())
            except BenchmarkError as error:
                results[name] = error
        return {**{name: _middle(found) for name, found in samples.items() if found}, **results}


class _Load:
    """A server and the calls of one block."""

    def __init__(self, variant: Variant, host: ServerHost, loop: asyncio.AbstractEventLoop) -> None:
        self._key = _ONE_KEY if variant.one_key else None
        self._calls = variant.calls
        self._cpu_seconds = partial(cpu_seconds, os.getpid()) if variant.has_processes else time.process_time
        self._host = host
        self._loop = loop
        self._next_id = 1

    def measure(self) -> Sample:
        """Make the calls and include the CPU time of threads and child processes."""
        calls = self._call_all(wire.keyed_calls(self._next_id, self._calls, self._key))
        self._next_id += self._calls
        spent, begin = self._cpu_seconds(), time.perf_counter()
        self._loop.run_until_complete(calls)
        elapsed, spent = time.perf_counter() - begin, self._cpu_seconds() - spent
        return {"cpu": spent * 1e6 / self._calls, "wall": elapsed * 1e6 / self._calls}

    async def _call_all(self, messages: list[bytes]) -> None:
        transport = MemoryTransport(self._host.handler, CALLER)
        for message in messages:
            transport.send(message)
            reply = await transport.receive()
            if wire.ANSWER not in reply:
                raise BenchmarkError(f"unexpected reply: {reply[:_QUOTED_CHARACTERS].decode(errors='replace')}")
        await transport.close()


@contextmanager
def _served(variant: Variant) -> Iterator[_Load]:
    """Start a server and warm it up."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="axolotl-bench-")))
        if variant.needs_redis:
            stack.enter_context(redis_server(directory))
        runner = stack.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
        host = ServerHost(variant.container(), flags=variant.settings(directory))
        runner.run(host.start())
        if host.watchdog is not None:
            host.watchdog.stop()  # the event loops take turns, and it would report a waiting one as blocked
        stack.callback(lambda: runner.run(host.stop()))
        load = _Load(variant, host, runner.get_loop())
        load.measure()
        tune_garbage_collector()
        yield load


def _middle(samples: list[Sample]) -> Sample:
    return {key: median(sample[key] for sample in samples) for key in samples[0]}
