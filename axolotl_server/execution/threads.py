"""Tools that run in threads, and the count of zombies."""

import asyncio
import contextlib
import contextvars
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, Invoke, Leftover

PER_TOOL: Final = 40
"""The maximum number of threads for one tool, or for all tools of a `pool`. Beyond it, calls wait."""

T = TypeVar("T")


class Zombies:
    """Answered calls whose code is still running: coroutines that swallow their cancellation, and threads."""

    def __init__(self) -> None:
        self.calls: set[Call] = set()
        self.total = 0
        """How many there were since startup."""

    def __len__(self) -> int:
        return len(self.calls)

    def add(self, call: Call) -> Leftover:
        """Count a call whose code runs on, and return what must be told when this code has ended."""
        leftover = call.leftover = call.leftover or Leftover()
        leftover.running += 1
        if call not in self.calls:
            self.total += 1
            self.calls.add(call)
            leftover.on_end.append(partial(self.calls.discard, call))
        return leftover

    def by_name(self) -> dict[str, int]:
        """Return the number of zombies per feature."""
        return Counter(call.spec.name for call in tuple(self.calls))


class _Raised(NamedTuple):
    """An exception of a tool; a future would throw a GeneratorExit into the whole task instead of the call."""

    error: BaseException


class ThreadRunner:
    """Runs tools in threads; the thread of a call that is stopped runs on until its code ends.

    Such a thread is counted as a zombie, and keeps its place in every limit. Each tool, or named pool of tools, has a
    share of the threads, so that no tool can take all of them. Calls wait in the loop, so that a call that is stopped
    stops waiting; in the queue of the executor it would wait until a thread is free, which may be never.
    """

    def __init__(self, threads: int, zombies: Zombies) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="axolotl-tool")
        self._free = asyncio.Semaphore(threads)
        self.waiting = 0
        """The number of calls that wait for a thread."""
        self._per_tool = min(threads, PER_TOOL)
        self._zombies = zombies
        self._sharing = threading.Lock()
        self._shares: WeakValueDictionary[tuple[str, str], asyncio.Semaphore] = WeakValueDictionary()
        """The shares of pools and tools that can be called, or whose code is still running."""

    def runner(self, spec: FeatureSpec) -> Invoke:
        """Return the function that runs a tool in a thread."""
        execute = spec.feature.execute
        share = self._share(spec)
        suspends = spec.feature.suspends

        def work(call: Call) -> Any:
            try:
                running = execute(call.arguments, call)
                return _finish_on_own_loop(running, call) if suspends else finish_at_once(running)
            except BaseException as error:
                return _Raised(error)

        async def invoke(call: Call) -> Any:
            _ = call.cancellation  # created here, before two threads could create it at once
            working = await self._submit(share, work, call)
            try:
                outcome = await loop_future(working)
            except asyncio.CancelledError:
                if working.cancel() or working.done():
                    self._release(share)
                else:
                    leftover, loop = self._zombies.add(call), asyncio.get_running_loop()

                    def end() -> None:
                        self._release(share)
                        leftover.end()

                    working.add_done_callback(lambda _: in_loop(loop, end))
                raise
            self._release(share)
            if isinstance(outcome, _Raised):
                raise outcome.error
            return outcome

        return invoke

    def close(self) -> None:
        """Refuse further calls, waiting ones one after the other; running threads are not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        with self._sharing:
            shares = tuple(self._shares.values())
        for share in shares:
            self._release(share)

    async def _submit(self, share: asyncio.Semaphore, work: Callable[[Call], Any], call: Call) -> Future[Any]:
        """Run a call as soon as its share has a place and a thread is free.

        It raises RuntimeError if the server is stopping. The share must be released when the thread is free again.
        """
        self.waiting += 1
        try:
            await share.acquire()
            try:
                await self._free.acquire()
            except BaseException:
                share.release()
                raise
        finally:
            self.waiting -= 1
        try:
            return self._executor.submit(contextvars.copy_context().run, work, call)
        except BaseException:
            self._release(share)
            raise

    def _release(self, share: asyncio.Semaphore) -> None:
        self._free.release()
        share.release()

    def _share(self, spec: FeatureSpec) -> asyncio.Semaphore:
        """Find the share of a tool or of its pool, or make one."""
        pool = spec.limits.pool
        key = (spec.kind, spec.name) if pool is None else ("pool", pool)
        with self._sharing:
            return self._shares.setdefault(key, asyncio.Semaphore(self._per_tool))


def in_loop(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Call a function in a loop from any thread; nothing happens if the loop is closed."""
    with contextlib.suppress(RuntimeError):  # the loop was closed before the thread ended
        loop.call_soon_threadsafe(act)


def loop_future(working: Future[T]) -> asyncio.Future[T]:
    """Return a future of the running loop for the work of another thread; cancelling it does not cancel the work.

    It is done after everything that the thread sent to the loop with `call_soon_threadsafe`. That of
    `asyncio.wrap_future` can be done earlier, from Python 3.14 on.
    """
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[T] = loop.create_future()

    def settle() -> None:
        if waiting.done():
            return
        if working.cancelled():
            waiting.cancel()
        elif (error := working.exception()) is not None:
            waiting.set_exception(error)
        else:
            waiting.set_result(working.result())

    working.add_done_callback(lambda _: in_loop(loop, settle))
    return waiting


def run_in_daemon_thread(name: str, work: Callable[[], T]) -> asyncio.Future[T]:
    """Start a thread of its own for the work; the future gets its result or its exception.

    `asyncio.to_thread` will not do for work that may never end: the process waits for its threads.
    """
    working: Future[T] = Future()
    working.set_running_or_notify_cancel()  # from now on, nobody but the thread ends it

    def run() -> None:
        try:
            working.set_result(work())
        except Exception as error:
            working.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return loop_future(working)


async def run_in_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the loop of another thread. Its first step is always run, even if the caller is cancelled."""
    working = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return await loop_future(working)
    except asyncio.CancelledError:
        in_loop(loop, partial(loop.call_soon, working.cancel))  # at the earliest in the turn after the first step
        raise


def _finish_on_own_loop(coroutine: Coroutine[Any, Any, Any], call: Call) -> Any:
    """Run a coroutine that may suspend; it is cancelled when its call is stopped."""

    async def run() -> Any:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        call.cancellation.on_cancel(lambda _: in_loop(loop, task.cancel))
        return await coroutine

    return asyncio.run(run())


def finish_at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never suspends, like that of a plain function."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("The tool of a plain function suspended: make the function async")
