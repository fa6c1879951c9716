"""Event loops for commands, and ends that wait for nobody."""

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from axolotl_cli.ending import leave_tasks_behind
from axolotl_cli.logs import set_log_level, start_logging
from axolotl_cli.streams import reserved_output
from axolotl_cli.targets import Choice
from axolotl_server.host import ServerHost

__all__ = ["run", "settle", "with_host"]

T = TypeVar("T")

_OBJECTS_BETWEEN_COLLECTIONS: Final = 20_000
_LAST_SECONDS: Final = 1.0


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the fastest loop there is; worker threads that are stuck are not waited for."""
    workers = ThreadPoolExecutor(thread_name_prefix="axolotl-worker")
    runner = asyncio.Runner(loop_factory=_loop_factory())
    loop = runner.get_loop()
    loop.set_default_executor(workers)
    try:
        return runner.run(work)
    finally:
        workers.shutdown(wait=False, cancel_futures=True)
        # The runner waits for the executor it finds: it shall find one without threads.
        loop.set_default_executor(ThreadPoolExecutor())
        if runner.run(_end_tasks()):
            runner.close()
        else:
            leave_tasks_behind()


async def _end_tasks() -> bool:
    """Cancel what still runs; answers False if something does not end, which the runner would wait for for ever."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_LAST_SECONDS)
    return all(task.done() for task in others)


def settle() -> None:
    """Spare the garbage collector what the start has made, and have it look less often at calls without cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, 20, 20)


def with_host(choice: Choice, work: Callable[[ServerHost], Awaitable[T]]) -> T:
    """Start the chosen server, do some work with it and stop it; nothing but the command writes to its output.

    Raises:
        ConfigurationError: if the server cannot start.
    """
    with reserved_output():
        start_logging(choice.log_level)
        return run(_started(choice.load(), work))


async def _started(host: ServerHost, work: Callable[[ServerHost], Awaitable[T]]) -> T:
    async with host:
        set_log_level(host.settings.log_level)
        return await work(host)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
