"""Event loops for commands, and ends that wait for nobody."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from axolotl_cli.ending import grace_seconds, guard_ending, hasten, leave_tasks_behind
from axolotl_cli.logs import set_log_level, start_logging
from axolotl_cli.streams import reserved_output
from axolotl_cli.targets import Choice
from axolotl_server.host import ServerHost
from axolotl_server.settings import ServerSettings

__all__ = ["run", "serving", "settle", "with_host"]

T = TypeVar("T")

_OBJECTS_BETWEEN_COLLECTIONS: Final = 20_000
_HASTY_SECONDS: Final = 2.0
"""How long a server has that was told twice to stop."""


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
        await asyncio.wait(others, timeout=grace_seconds())
    return all(task.done() for task in others)


@asynccontextmanager
async def serving(host: ServerHost, draining_seconds: Callable[[ServerSettings], float]) -> AsyncIterator[None]:
    """Start a server for the block and stop it after; signals are heard until it has stopped.

    However stuck the server is, a signal ends the process in the time that calls and closing have together.

    Raises:
        ConfigurationError: if the server cannot start.
    """
    await host.start()
    patience = draining_seconds(host.settings) + host.settings.limits.close_seconds
    end_within = guard_ending()

    def hear(times: int) -> None:
        if times > 1:
            hasten()
        end_within(_HASTY_SECONDS if times > 1 else patience)

    with host.ending.listening(hear):
        try:
            yield
        finally:
            await host.stop()


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
        if host.watchdog is not None:
            host.watchdog.stop()  # there is nobody else whom code that blocks could hold up
        return await work(host)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
