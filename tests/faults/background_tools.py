"""Tools whose faults reach beyond their own call: cancellations, exits and log handlers."""

import asyncio
import logging
import sys
import threading
from collections.abc import Callable

from dependency_injector import containers, providers

from axolotl_core import Context, tool
from tests.support.tools import echo

DEADLINE = 0.1

_waiting: set[asyncio.Event] = set()
_blocking = threading.Event()


def let_go() -> None:
    """End everything that waits."""
    while _waiting:
        _waiting.pop().set()
    _blocking.set()


async def _until_released() -> None:
    event = asyncio.Event()
    _waiting.add(event)
    await event.wait()


def _cancel_own_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


@tool
async def cancel_and_wait() -> str:
    _cancel_own_task()
    await asyncio.Event().wait()
    return "never"


@tool
async def cancel_and_return() -> str:
    _cancel_own_task()
    return "done"


@tool
async def report_cancel_and_wait(context: Context) -> str:
    context.report_progress(1)
    _cancel_own_task()
    await asyncio.Event().wait()
    return "never"


@tool
async def report_cancel_and_return(context: Context) -> str:
    context.report_progress(1)
    _cancel_own_task()
    _cancel_own_task()
    return "done"


def _exit() -> None:
    sys.exit(5)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _stop_loop() -> None:
    asyncio.get_running_loop().stop()


FAULTS: dict[str, Callable[[], None]] = {"exit": _exit, "interrupt": _interrupt, "stop_loop": _stop_loop}


@tool
async def fail_in_task(fault: str) -> str:
    """Fail in a task of its own."""

    async def work() -> None:
        FAULTS[fault]()

    await asyncio.wait((asyncio.ensure_future(work()),))
    return "survived"


@tool
async def fail_in_callback(fault: str) -> str:
    """Fail in a callback of the event loop."""
    loop = asyncio.get_running_loop()
    loop.call_soon(FAULTS[fault])
    later = asyncio.Event()
    loop.call_later(0.01, later.set)
    await later.wait()
    return "survived"


@tool
async def wait() -> str:
    """Wait until the server is told to go on."""
    await _until_released()
    return "waited"


@tool
async def release() -> None:
    """End everything that waits."""
    let_go()


class _RaisingHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise ZeroDivisionError("the handler is broken")


@tool
async def break_log() -> None:
    """Add a log handler that raises, as user code may do."""
    logging.getLogger().addHandler(_RaisingHandler())


@tool
async def repair_log() -> None:
    """Remove the broken log handlers."""
    log = logging.getLogger()
    for handler in [one for one in log.handlers if isinstance(one, _RaisingHandler)]:
        log.removeHandler(handler)


@tool
async def fail() -> None:
    raise ValueError("hidden")


@tool(timeout_seconds=DEADLINE)
def block() -> None:
    """Block a thread beyond the deadline."""
    _blocking.clear()
    _blocking.wait(60)


@tool(timeout_seconds=DEADLINE)
async def ignore_cancellation() -> None:
    """Go on after the deadline."""
    try:
        await _until_released()
    except asyncio.CancelledError:
        await _until_released()


class Container(containers.DeclarativeContainer):
    """All of these tools."""

    tools = providers.List(
        *map(providers.Object, (echo, cancel_and_wait, cancel_and_return)),
        *map(providers.Object, (report_cancel_and_wait, report_cancel_and_return)),
        *map(providers.Object, (fail_in_task, fail_in_callback, wait, release)),
        *map(providers.Object, (break_log, repair_log, fail, block, ignore_cancellation)),
    )
