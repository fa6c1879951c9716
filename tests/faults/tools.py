"""Tools with every fault that a server has to survive."""

import asyncio
import os
import re
import signal
import threading
from typing import Any

import psutil
from dependency_injector import containers, providers

from axolotl_core import Context, ToolError, tool
from axolotl_server.calls.running_call import RunningCall
from tests.support.tools import echo

DEADLINE = 0.3
LONG = 60.0
MEMORY_BYTES = 2**30
HELD_SECONDS = 0.4

_released = threading.Event()
_held: list[asyncio.Event] = []


async def _until_released() -> None:
    """Wait until the test releases it."""
    event = asyncio.Event()
    _held.append(event)
    await event.wait()


def let_go() -> None:
    """End all abandoned code."""
    _released.set()
    while _held:
        _held.pop().set()


@tool
async def release() -> None:
    """End all abandoned code, from another process."""
    let_go()


@tool
async def hold_again() -> None:
    """Block again until the next release."""
    _released.clear()


@tool
async def census(context: Context) -> dict[str, int]:
    """Count everything that runs, except this call."""
    assert isinstance(context, RunningCall)
    inflight = context.calls
    return {
        "inflight": len(inflight) - 1,
        "zombies": len(inflight.zombies),
        "finalising": len(inflight.scope_closer),
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "processes": len(psutil.Process().children(recursive=True)),
    }


@tool
def echo_in_thread(text: str) -> str:
    return text


@tool(timeout_seconds=DEADLINE)
async def hang() -> None:
    """Never end, but obey cancellation."""
    await asyncio.Event().wait()


@tool(timeout_seconds=DEADLINE)
async def swallow() -> str:
    """Ignore the first cancellation; obey the second one, so that a failed test does not hang."""
    try:
        await _until_released()
    except asyncio.CancelledError:
        await _until_released()
    return "never read"


@tool(timeout_seconds=DEADLINE)
async def swallow_everything() -> str:
    """Never end and ignore every cancellation; only for separate processes."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@tool(timeout_seconds=DEADLINE)
async def turn_into_another_error() -> None:
    """Raise a different error when canceled."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise ValueError("something else") from None


@tool(timeout_seconds=DEADLINE)
async def answer_anyway() -> str:
    """Return a result when canceled."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "anyway"
    return "never"


@tool(timeout_seconds=DEADLINE)
def block() -> str:
    """Block a thread."""
    _released.wait(LONG)
    return "never read"


@tool(timeout_seconds=DEADLINE)
def fail_late() -> str:
    """Block a thread and fail after the call was abandoned."""
    _released.wait(LONG)
    raise ValueError("nobody hears this")


@tool(execution="thread", timeout_seconds=DEADLINE)
async def hang_in_thread() -> None:
    """Never end, in an event loop of a thread."""
    await asyncio.Event().wait()


@tool(timeout_seconds=DEADLINE)
async def flood(context: Context) -> None:
    """Send many messages until canceled."""
    number = 0
    while True:
        number += 1
        context.report_progress(number)
        await asyncio.sleep(0)


@tool
async def hold_the_loop() -> str:
    """Block the event loop for a while."""
    threading.Event().wait(HELD_SECONDS)
    return "held"


@tool
async def recurse() -> int:
    async def deeper() -> int:
        return await deeper() + 1

    return await deeper()


@tool
def recurse_in_thread() -> int:
    return recurse_in_thread() + 1


@tool
async def raise_exit() -> None:
    raise SystemExit(3)


@tool
def raise_exit_in_thread() -> None:
    raise SystemExit(3)


@tool
async def raise_interrupt() -> None:
    raise KeyboardInterrupt


@tool
async def raise_cancelled() -> None:
    raise asyncio.CancelledError


@tool
def raise_generator_exit() -> None:
    raise GeneratorExit


@tool
async def raise_group() -> None:
    raise BaseExceptionGroup("several", [ValueError("one"), KeyboardInterrupt()])


@tool
async def complain() -> None:
    raise ToolError("told")


@tool
async def give_what_cannot_be_written() -> Any:
    return {"object": object()}


@tool(max_result_bytes=1000)
async def give_too_much() -> str:
    return "x" * 10_000


@tool(execution="process", timeout_seconds=DEADLINE)
def spin() -> None:
    """Never end and never wait, in a tool process."""
    while True:
        pass


@tool(execution="process", timeout_seconds=DEADLINE)
def match() -> bool:
    """Never end and hold the interpreter lock, in a tool process."""
    return re.fullmatch("(a+)+", "a" * 60 + "b") is not None


@tool(execution="process", timeout_seconds=LONG)
def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@tool(execution="process", timeout_seconds=LONG)
def devour() -> int:
    return len(bytearray(MEMORY_BYTES))


@tool(execution="process", timeout_seconds=LONG)
def recurse_in_process() -> int:
    return recurse_in_process() + 1


ALL = (
    *(
        release,
        hold_again,
        census,
        echo,
        echo_in_thread,
        hang,
        swallow,
        swallow_everything,
        turn_into_another_error,
        answer_anyway,
    ),
    *(block, fail_late, hang_in_thread, flood, hold_the_loop, recurse, recurse_in_thread, raise_exit),
    *(raise_exit_in_thread, raise_interrupt, raise_cancelled, raise_generator_exit, raise_group, complain),
    *(give_what_cannot_be_written, give_too_much, spin, match, crash, devour),
    recurse_in_process,
)

SETTINGS = {
    "limits": {"max_process_bytes": MEMORY_BYTES, "processes": 1},
    "http": {"drain_seconds": 0},
}


class Container(containers.DeclarativeContainer):
    """All of these tools."""

    settings = providers.Object(SETTINGS)
    tools = providers.List(*map(providers.Object, ALL))


class Patient(containers.DeclarativeContainer):
    """All of these tools, with a timeout longer than any test."""

    settings = providers.Object({**SETTINGS, "tools": {one.name: {"timeout_seconds": LONG} for one in ALL}})
    tools = providers.List(*map(providers.Object, ALL))
