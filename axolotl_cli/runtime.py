"""Event loop, output streams and life of a server that a command runs."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from axolotl_cli.exit import grace_seconds, has_stuck_tasks, is_in_hurry, start_exit_timer
from axolotl_cli.logs import set_log_level, start_logging
from axolotl_cli.target import ChosenTarget
from axolotl_server.execution.closing import CLOSE_SECONDS
from axolotl_server.host import ServerHost
from axolotl_server.hosting.container_loading import load_container
from axolotl_server.hosting.role_resolution import resolve_settings
from axolotl_server.settings.loading import load_with_origins
from axolotl_server.settings.server import ServerSettings

T = TypeVar("T")

_log: Final = logging.getLogger("axolotl")

_OBJECTS_BETWEEN_COLLECTIONS: Final = 20_000
_HURRIED_SECONDS: Final = 2.0
"""How long a server may take to stop after a second signal."""


@contextlib.contextmanager
def reserved_output() -> Iterator[None]:
    """Send everything that other code prints, from Python, C or a child process, to stderr."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, on uvloop if it is installed, without waiting for stuck threads or tasks afterwards."""
    threads = ThreadPoolExecutor(thread_name_prefix="axolotl-worker")
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        import uvloop

        loop_factory = uvloop.new_event_loop
    runner = asyncio.Runner(loop_factory=loop_factory)
    loop = runner.get_loop()
    loop.set_default_executor(threads)
    try:
        return _run_to_end(loop, loop.create_task(work))
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        # The runner waits for the threads of the default executor: give it one without threads.
        loop.set_default_executor(ThreadPoolExecutor())
        if runner.run(_cancel_tasks()):
            runner.close()
        else:
            has_stuck_tasks.set()


def _run_to_end(loop: asyncio.AbstractEventLoop, task: asyncio.Task[T]) -> T:
    """Run a task to its end, although other tasks and callbacks may raise SystemExit or stop the loop."""
    while True:
        try:
            return loop.run_until_complete(task)
        except BaseException as error:
            # A signal raises KeyboardInterrupt only as long as Python itself handles it.
            is_handled_by_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
            interrupted = isinstance(error, KeyboardInterrupt) and is_handled_by_python
            if task.done() or loop.is_closed() or interrupted:
                raise
            _log.error("a task or callback in the background tried to end the server, which goes on", exc_info=error)


async def _cancel_tasks() -> bool:
    """Cancel all other tasks; return False if one does not end, for which the runner would wait forever."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=grace_seconds())
    return all(task.done() for task in others)


@asynccontextmanager
async def serving(host: ServerHost, drain_seconds: Callable[[ServerSettings], float]) -> AsyncIterator[None]:
    """Start a server, make it ready to serve for the block, and stop it afterwards; handle signals until then.

    However stuck the server is, after a signal the process ends within the time that calls and closing have together.
    """
    await host.start()
    shutdown_seconds = drain_seconds(host.settings) + CLOSE_SECONDS
    exit_within = start_exit_timer()

    def on_signal(times: int) -> None:
        if times > 1:
            is_in_hurry.set()
        exit_within(_HURRIED_SECONDS if times > 1 else shutdown_seconds)

    with host.stop_signal.listening(on_signal):
        try:
            set_log_level(host.settings.log_level, host.settings.log)
            if host.assembly.audit is not None:
                host.assembly.audit.trail.open()
            tune_garbage_collector()
            yield
        finally:
            await host.stop()


def tune_garbage_collector() -> None:
    """Exempt the objects of the start from garbage collection, and collect less often: calls make few cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, 20, 20)


def without_stored_tasks(settings: ServerSettings) -> ServerSettings:
    """Keep the tasks of a single command in memory: it waits for them, and runs no others."""
    return settings.model_copy(update={"tasks": settings.tasks.model_copy(update={"url": None})})


def with_host(
    target: ChosenTarget,
    work: Callable[[ServerHost], Awaitable[T]],
    *,
    is_audited: bool = True,
    user_code_only: bool = False,
) -> T:
    """Start a server, do some work with it and stop it; meanwhile nothing is written to stdout.

    Work that calls features must not be audited: the audit logs belong to the server in production, which may be
    running.
    """

    async def run_work(host: ServerHost) -> T:
        async with host:
            set_log_level(host.settings.log_level)
            if host.watchdog is not None:
                host.watchdog.stop()  # there is only one call, so blocking code delays no other
            return await work(host)

    with reserved_output():
        start_logging(target.settings.log_level, user_code_only=user_code_only)
        return run(run_work(target.load(without_stored_tasks, is_audited=is_audited)))


def load_server_settings(target: ChosenTarget) -> ServerSettings:
    """Return the settings of a server, including those of its container, without starting a resource."""
    with reserved_output():
        of_container = run(resolve_settings(load_container(target.name)))
        return load_with_origins(flags=target.flags, file=target.file, container=of_container).settings
