"""Tools that end in every way, and a count of the objects that the server holds."""

import asyncio
import gc
import sys
import threading
from collections import Counter

from dependency_injector import containers, providers

from axolotl_core import Context, ToolError, tool

LONG_ENOUGH = 0.05
"""How long a call takes to be watched for the disconnection of its client."""


@tool
async def count_objects() -> dict[str, int]:
    """Count the objects of each type and the blocks of memory, after garbage collection."""
    await asyncio.sleep(LONG_ENOUGH)  # calls that have ended are released by the next tick of the table of calls
    for _ in range(3):
        gc.collect()
        await asyncio.sleep(0)
    counts = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())
    return {**counts, "blocks": sys.getallocatedblocks()}


async def _take_time() -> None:
    await asyncio.sleep(LONG_ENOUGH)


@tool
async def reply() -> str:
    await _take_time()
    return "done"


@tool
async def report(context: Context) -> str:
    for number in range(3):
        context.report_progress(number)
        await _take_time()
    return "done"


@tool
async def refuse() -> str:
    await _take_time()
    raise ToolError("no")


@tool
async def crash() -> str:
    await _take_time()
    raise ValueError("hidden")


@tool(timeout_seconds=LONG_ENOUGH)
async def hang(context: Context) -> None:
    context.report_progress(1)
    await asyncio.Event().wait()


@tool
async def wait_for_cancellation() -> None:
    await asyncio.Event().wait()


@tool
async def cancel_itself() -> None:
    await _take_time()
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()


@tool
def use_thread() -> str:
    threading.Event().wait(LONG_ENOUGH)
    return "done"


@tool(timeout_seconds=LONG_ENOUGH)
def leave_thread() -> str:
    """Work a little longer than the deadline."""
    threading.Event().wait(LONG_ENOUGH * 3)
    return "done"


@tool(execution="process")
def use_process(context: Context) -> str:
    context.report_progress(1)
    return "done"


@tool(execution="process")
def crash_in_process() -> str:
    raise ValueError("hidden")


class Container(containers.DeclarativeContainer):
    """All of these tools."""

    tools = providers.List(
        *map(providers.Object, (count_objects, reply, report, refuse, crash, hang, wait_for_cancellation)),
        *map(providers.Object, (cancel_itself, use_thread, leave_thread, use_process, crash_in_process)),
    )
