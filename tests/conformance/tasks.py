"""Tools that run as tasks, for the scenarios of the tasks extension."""

import asyncio
from typing import Final

from pydantic import BaseModel

from axolotl_core import Context, ProtocolError, ToolError, tool
from axolotl_core.registry import AnyTool
from tests.conformance.forms import Name


class Decision(BaseModel):
    """Whether to continue."""

    confirm: bool


@tool
async def greet(name: str) -> str:
    """Return a greeting immediately."""
    return f"Hello, {name}!"


@tool(task_support="optional", timeout_seconds=120)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return f"Computed {label} in {seconds:g} seconds"


@tool(task_support="required")
async def failing_job() -> str:
    """Fail with a message for the model."""
    raise ToolError("The job failed")


@tool(task_support="optional")
async def protocol_error_job() -> str:
    """Fail with a protocol error."""
    raise ProtocolError("The job broke")


@tool(task_support="optional")
async def confirm_delete(filename: str, context: Context) -> str:
    """Ask for a confirmation first."""
    answer = await context.ask(Decision, f"Delete {filename}?", key="confirm")
    return f"Deleted {filename}" if answer.confirm else f"Kept {filename}"


@tool(task_support="optional")
async def multi_input(context: Context) -> str:
    """Ask two questions at once."""
    first, second = await asyncio.gather(
        context.ask(Decision, "The first?", key="first"), context.ask(Decision, "The second?", key="second")
    )
    return f"{first.confirm} and {second.confirm}"


@tool(name="test_tool_with_task", task_support="detached")
async def ask_first(context: Context) -> str:
    """Ask in the request, and greet in a task."""
    answer = await context.ask(Name, "What is your name?", key="name")
    await context.detach()
    return f"Hello, {answer.name}!"


TASK_TOOLS: Final[tuple[AnyTool, ...]] = (
    greet,
    slow_compute,
    failing_job,
    protocol_error_job,
    confirm_delete,
    multi_input,
    ask_first,
)
