"""Tools that run in threads, and the count of zombies."""

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
    """Answered calls whose code is still running: coroutines that swallow their cancellation, and threads."""

    def __init__(self, on_change: Callable[[], object] | None = None) -> None:
        self._on_change = on_change
        self._running: dict[ToolCall, int] = {}
        """How often each was counted: a layer may have given up waiting more than once."""
        self.total = 0
        """How many there were since startup."""

    def __len__(self) -> int:
        return len(self._running)

    def add(self, call: ToolCall) -> None:
        """Count a call whose code is still running."""
        self._running[call] = self._running.get(call, 0) + 1
        if self._running[call] == 1:
            self.total += 1
            self._notify()

    def remove(self, call: ToolCall) -> None:
        """Stop counting a call whose code has ended; called as often as it was added."""
        if call in self._running:
            self._running[call] -= 1
            if not self._running[call]:
                del self._running[call]
                self._notify()

    def by_name(self) -> dict[str, int]:
        """Give the number of zombies per feature."""
        counts: dict[str, int] = {}
        for call in tuple(self._running):
            counts[call.spec.name] = counts.get(call.spec.name, 0) + 1
        return counts

    def _notify(self) -> None:
        if self._on_change is not None:
            self._on_change()


class _Raised(NamedTuple):
    """An exception of a tool; a future would throw a GeneratorExit into the whole task instead of the call."""

    error: BaseException


class _Pool:
    """Threads, and the calls that wait for one.

    Calls wait in the loop, so that a call that is stopped stops waiting. In the queue of the executor it would wait
    until a thread is free, which may be never.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._free = asyncio.Semaphore(threads)
        self.waiting = 0
        """The number of calls that wait for a thread."""

    async def submit(self, work: Callable[[ToolCall], Any], call: ToolCall) -> Future[Any]:
        """Run a call as soon as a thread is free, or raise RuntimeError if the server is stopping.

        `release` must be called when the thread is free again.
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
        """Give the thread to the next call."""
        self._free.release()

    def close(self) -> None:
        """Refuse further calls; waiting calls are refused one after the other."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self.release()


class ThreadRunner:
    """Runs tools in pools of threads; the thread of a call that is stopped runs on until its code ends.

    Such a thread is counted as a zombie, and keeps its place in the pool and in every limit.
    """

    def __init__(self, threads: int, zombies: Zombies | None = None) -> None:
        self._threads = threads
        self._zombies = Zombies() if zombies is None else zombies
        self._pools: dict[str | None, _Pool] = {}

    def runner(self, spec: FeatureSpec) -> Invoke:
        """Give the function that runs a tool in a thread."""
        execute = spec.feature.execute
        pool = self._pool(spec.limits.pool)
        finish = _finish_on_own_loop if spec.feature.suspends else _finish_at_once

        def work(call: ToolCall) -> Any:
            try:
                return finish(execute(call.arguments, call), call)
            except BaseException as error:
                return _Raised(error)

        async def invoke(call: ToolCall) -> Any:
            _ = call.cancellation  # created here, before two threads could create it at once
            working = await pool.submit(work, call)
            try:
                outcome = await asyncio.wrap_future(working)
            except asyncio.CancelledError:
                if working.cancel() or working.done():
                    pool.release()
                else:
                    self._add_zombie(call, working)(pool.release)
                raise
            pool.release()
            if isinstance(outcome, _Raised):
                raise outcome.error
            return outcome

        return invoke

    @property
    def waiting(self) -> int:
        """The number of calls that wait for a thread."""
        return sum(pool.waiting for pool in tuple(self._pools.values()))

    def close(self) -> None:
        """Refuse further calls; running threads are not waited for."""
        for pool in self._pools.values():
            pool.close()

    def _pool(self, group: str | None) -> _Pool:
        name = "axolotl-tool" if group is None else f"axolotl-{group}"
        return self._pools.setdefault(group, _Pool(self._threads, name))

    def _add_zombie(self, call: ToolCall, working: Future[Any]) -> Callable[[Callable[[], object]], None]:
        """Count a thread that runs on, and give a function that registers a callback for its end."""
        loop = asyncio.get_running_loop()
        self._zombies.add(call)

        def when_done(act: Callable[[], object]) -> None:
            working.add_done_callback(lambda _: in_loop(loop, act))

        before = call.lingers  # an earlier thread of the same call, if a layer has retried it
        call.lingers = when_done if before is None else lambda act: before(partial(when_done, act))
        when_done(partial(self._zombies.remove, call))
        return when_done


def in_loop(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Call a function in a loop from any thread; nothing happens if the loop is closed."""
    with contextlib.suppress(RuntimeError):  # the loop was closed before the thread ended
        loop.call_soon_threadsafe(act)


def _finish_on_own_loop(coroutine: Coroutine[Any, Any, Any], call: ToolCall) -> Any:
    """Run a coroutine that may suspend; it is cancelled when its call is stopped."""

    async def run() -> Any:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        call.cancellation.on_cancel(lambda _: in_loop(loop, task.cancel))
        return await coroutine

    return asyncio.run(run())


def _finish_at_once(coroutine: Coroutine[Any, Any, Any], call: ToolCall) -> Any:
    return finish_at_once(coroutine)


def finish_at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never suspends, like that of a plain function."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("The tool of a plain function suspended: make the function async")
