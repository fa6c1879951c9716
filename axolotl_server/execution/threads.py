"""Tools that run in worker threads, away from the event loop."""

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Invoke, ToolCall


class Zombies:
    """What runs for nobody: coroutines that swallow their cancellation, and threads, which cannot be cancelled."""

    def __init__(self, on_change: Callable[[], object] | None = None) -> None:
        self._on_change = on_change
        self._running: dict[ToolCall, int] = {}
        """How often each was counted: a layer may have given up waiting more than once."""
        self.total = 0
        """How many there were since the start."""

    def __len__(self) -> int:
        return len(self._running)

    def add(self, call: ToolCall) -> None:
        """Count a call whose code was left behind."""
        self._running[call] = self._running.get(call, 0) + 1
        if self._running[call] == 1:
            self.total += 1
            self._tell()

    def remove(self, call: ToolCall) -> None:
        """Count it no more, as often as it was counted: its code has ended."""
        if call in self._running:
            self._running[call] -= 1
            if not self._running[call]:
                del self._running[call]
                self._tell()

    def by_name(self) -> dict[str, int]:
        """Say which features have left how much behind."""
        counts: dict[str, int] = {}
        for call in tuple(self._running):
            counts[call.spec.name] = counts.get(call.spec.name, 0) + 1
        return counts

    def _tell(self) -> None:
        if self._on_change is not None:
            self._on_change()


class _Raised(NamedTuple):
    """What a tool raised; a future would throw a GeneratorExit into the whole task instead of into the call."""

    error: BaseException


class _Pool:
    """Threads, and the calls that wait for one: on the loop, so that one that waits no longer is forgotten at once.

    In the queue of the threads it would stay until one of them is free, which may be never.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._free = asyncio.Semaphore(threads)
        self.waiting = 0
        """How many calls wait for a thread."""

    async def submit(self, work: Callable[[ToolCall], Any], call: ToolCall) -> Future[Any]:
        """Have a call worked for as soon as a thread is free; `release` says when it is so again.

        Raises:
            RuntimeError: if the server ends.
        """
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        try:
            return self._executor.submit(contextvars.copy_context().run, work, call)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let the next one have the thread."""
        self._free.release()

    def close(self) -> None:
        """Take no more work; who waits is refused, one after the other."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self.release()


class ThreadRunner:
    """Runs tools in pools of threads; a call that is stopped leaves its thread behind to finish alone.

    Such a thread is counted, and keeps its place in the pool and in every limit until it has really ended.
    """

    def __init__(self, threads: int, zombies: Zombies | None = None) -> None:
        self._threads = threads
        self._zombies = Zombies() if zombies is None else zombies
        self._pools: dict[str | None, _Pool] = {}

    def runner(self, spec: FeatureSpec) -> Invoke:
        """Give what runs a tool in the pool."""
        execute = spec.feature.execute
        pool = self._pool(spec.limits.pool)
        finish = _finish_on_own_loop if spec.feature.suspends else _finish_at_once

        def work(call: ToolCall) -> Any:
            try:
                return finish(execute(call.arguments, call), call)
            except BaseException as error:
                return _Raised(error)

        async def invoke(call: ToolCall) -> Any:
            _ = call.cancellation  # made before two threads may want to make it
            working = await pool.submit(work, call)
            try:
                outcome = await asyncio.wrap_future(working)
            except asyncio.CancelledError:
                if working.cancel() or working.done():
                    pool.release()
                else:
                    self._leave_behind(call, working)(pool.release)
                raise
            pool.release()
            if isinstance(outcome, _Raised):
                raise outcome.error
            return outcome

        return invoke

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return sum(pool.waiting for pool in tuple(self._pools.values()))

    def close(self) -> None:
        """Take no more work; threads that still run are not waited for."""
        for pool in self._pools.values():
            pool.close()

    def _pool(self, group: str | None) -> _Pool:
        name = "axolotl-tool" if group is None else f"axolotl-{group}"
        return self._pools.setdefault(group, _Pool(self._threads, name))

    def _leave_behind(self, call: ToolCall, working: Future[Any]) -> Callable[[Callable[[], object]], None]:
        """Count a thread that goes on for nobody; gives what has something done when it has ended."""
        loop = asyncio.get_running_loop()
        self._zombies.add(call)

        def when_done(act: Callable[[], object]) -> None:
            working.add_done_callback(lambda _: in_loop(loop, act))

        before = call.lingers  # of a thread of the same call, where a layer has given up waiting and tried again
        call.lingers = when_done if before is None else lambda act: before(partial(when_done, act))
        when_done(partial(self._zombies.remove, call))
        return when_done


def in_loop(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Do something in a loop soon, from whatever thread; nothing happens if the loop has ended."""
    with contextlib.suppress(RuntimeError):  # the loop has ended before the thread
        loop.call_soon_threadsafe(act)


def _finish_on_own_loop(coroutine: Coroutine[Any, Any, Any], call: ToolCall) -> Any:
    """Run a coroutine that may wait; it is cancelled when its call is stopped."""

    async def run() -> Any:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        call.cancellation.on_cancel(lambda _: in_loop(loop, task.cancel))
        return await coroutine

    return asyncio.run(run())


def _finish_at_once(coroutine: Coroutine[Any, Any, Any], call: ToolCall) -> Any:
    return finish_at_once(coroutine)


def finish_at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits, as those of plain functions do."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a plain function's tool waited for something: make the function async")
