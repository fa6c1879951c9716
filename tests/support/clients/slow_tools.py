"""Slow tools: with progress, cancellation, closed connections and tasks."""

import asyncio
from collections import defaultdict
from typing import Annotated, Final, Literal, cast

from pydantic import BaseModel, Field

from axolotl_core import Context, ToolError, tool
from axolotl_core.protocol.messages import LEVELS, LogLevel
from axolotl_core.registry import AnyTool
from tests.support.clients.asking_tools import Word


class Wind(BaseModel):
    """A part of a report."""

    speed: float
    direction: Literal["north", "east", "south", "west"]


class Report(BaseModel):
    """A structured result."""

    city: str
    winds: list[Wind]
    note: str | None = None


class Works:
    """Running work by name, and the waiting callers."""

    def __init__(self) -> None:
        self.begun: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.released: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.stopped: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)


_works = Works()


def begun(name: str) -> asyncio.Event:
    """The event that the work with that name has begun, in this process."""
    return _works.begun[name]


@tool
async def climb(steps: int, total: int | None, context: Context) -> str:
    """Report every step, as fast as possible."""
    for step in range(1, steps + 1):
        context.report_progress(step, total, f"step {step}")
    return "there"


@tool
async def chatter(context: Context) -> str:
    """Log at every level."""
    for level in LEVELS:
        context.log(cast(LogLevel, level), {"said": level}, logger="chatter")
    return "enough"


@tool
async def stall(name: str, context: Context) -> str:
    """Run until stopped."""
    context.report_progress(1)
    _works.begun[name].set()
    try:
        await asyncio.Event().wait()
    finally:
        _works.stopped[name].set()
    return "never"


@tool
async def drift(name: str, context: Context) -> str:
    """Close the connection, and run until stopped."""
    context.report_progress(1)
    context.hang_up()
    context.report_progress(2)
    return await stall(name, context)


@tool
async def began(name: str) -> bool:
    """Wait until the work with that name has begun."""
    await _works.begun[name].wait()
    return True


@tool
async def stopped(name: str) -> bool:
    """Wait until the work with that name was stopped."""
    await _works.stopped[name].wait()
    return True


@tool(timeout_seconds=0.4)
async def overrun() -> None:
    """Exceed the timeout."""
    await asyncio.Event().wait()


@tool
async def leave(name: str, context: Context) -> str:
    """Close the connection, continue, ask, and reply."""
    context.report_progress(1)
    context.hang_up()
    context.report_progress(2)
    await _works.released[name].wait()
    return f"{name} {(await context.ask(Word, 'Still there?')).word}"


@tool
async def follow(name: str, context: Context) -> str:
    """Report a step, and wait until released."""
    context.report_progress(1)
    await _works.released[name].wait()
    context.report_progress(2)
    return f"{name} followed"


@tool
async def release(name: str) -> None:
    """Release the work with that name."""
    _works.released[name].set()


@tool
async def report(city: str) -> Report:
    """Return structured content."""
    return Report(city=city, winds=[Wind(speed=3.5, direction="north"), Wind(speed=1, direction="east")])


@tool
async def routed(tenant: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Tenant"})], amount: int) -> str:
    """Return an argument that is repeated in a header."""
    return f"{amount} for {tenant}"


@tool(task_support="optional")
async def compose(name: str, context: Context) -> Report:
    """Ask during a task."""
    answer = await context.ask(Word, "Which note?", key="note")
    return Report(city=name, winds=[], note=answer.word)


@tool(task_support="required")
async def toil(name: str, context: Context) -> str:
    """Run as a task until stopped."""
    return await stall(name, context)


@tool(task_support="required")
async def spoil() -> str:
    """Fail as a task."""
    raise ToolError("spoiled")


WORKING_TOOLS: Final[tuple[AnyTool, ...]] = (
    climb,
    chatter,
    stall,
    drift,
    began,
    stopped,
    overrun,
    leave,
    follow,
    release,
    report,
    routed,
    compose,
    toil,
    spoil,
)
