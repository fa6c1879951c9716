"""The settings that a server will have, without starting it."""

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from axolotl_cli.exit import grace_seconds, guard_ending, hasten, leave_tasks_behind
from axolotl_cli.logs import set_log_level, start_logging
from axolotl_cli.target import ChosenTarget
from axolotl_server.configuration.loading import load_with_origins
from axolotl_server.host import ServerHost
from axolotl_server.hosting.container_loading import load_container
from axolotl_server.hosting.roles import resolve_settings
from axolotl_server.settings.server import ServerSettings


@contextlib.contextmanager
def reserved_output() -> Iterator[None]:
    """Send what others print, from Python, C or a child process, to the standard error stream."""
    sys.stdout.flush()
    with _redirected_descriptor(), contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def _redirected_descriptor() -> Iterator[None]:
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)


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
async def serving(
    host: ServerHost,
    drain_seconds: Callable[[ServerSettings], float],
    check: Callable[[ServerHost], object] | None = None,
) -> AsyncIterator[None]:
    """Start a server, make it ready to serve for the block, and stop it afterwards; handle signals until then.

    However stuck the server is, after a signal the process ends within the time that calls and closing have together.
    """
    await host.start()
    shutdown_seconds = drain_seconds(host.settings) + host.settings.limits.close_seconds
    end_within = guard_ending()

    def on_signal(times: int) -> None:
        if times > 1:
            hasten()
        end_within(_HASTY_SECONDS if times > 1 else shutdown_seconds)

    with host.ending.listening(on_signal):
        try:
            set_log_level(host.settings.log_level, host.settings.log)
            if host.audit is not None:
                host.audit.trail.open()
            if check is not None:
                check(host)
            tune_garbage_collector()
            yield
        finally:
            await host.stop()


def tune_garbage_collector() -> None:
    """Exempt the objects of the start from garbage collection, and collect less often: calls make few cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, 20, 20)


def with_host(choice: ChosenTarget, work: Callable[[ServerHost], Awaitable[T]]) -> T:
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


def settings_ahead(choice: ChosenTarget) -> ServerSettings:
    """Import the target, and ask it and all other sources for settings; no resource is started.

    Raises:
        ConfigurationError: if the target names no container, or the settings are wrong.
    """
    with reserved_output():
        return run(_settings(choice))


async def _settings(choice: ChosenTarget) -> ServerSettings:
    said = await resolve_settings(load_container(choice.target))
    return load_with_origins(flags=choice.flags, file=choice.file, container=said).settings
