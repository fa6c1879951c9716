"""Tools that send notifications, and one that closes the connection."""

import asyncio
from typing import Final

from axolotl_core import Context, tool
from axolotl_core.registry import AnyTool

_STEP_SECONDS = 0.05
"""The pause between two notifications, so that they are sent separately."""


@tool(name="test_tool_with_progress")
async def with_progress(context: Context) -> str:
    """Report progress in three steps."""
    for progress in (0, 50, 100):
        context.report_progress(progress, 100, f"Completed step {progress} of 100")
        await asyncio.sleep(_STEP_SECONDS)
    return "Completed 100 of 100"


@tool(name="test_tool_with_logging")
async def with_logging(context: Context) -> str:
    """Log three messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.log("info", message)
        await asyncio.sleep(_STEP_SECONDS)
    return "Logged three messages"


@tool(name="test_logging_tool")
async def logging_tool(context: Context) -> str:
    """Log at three levels."""
    context.log("debug", "A detail")
    context.log("info", {"step": 1}, logger="conformance")
    context.log("error", "Something that is not one")
    return "Logged at three levels"


@tool(name="test_reconnection")
async def reconnection(context: Context) -> str:
    """Close the connection before the reply; the client resumes it."""
    context.hang_up()
    await asyncio.sleep(_STEP_SECONDS)
    return "Reconnection test completed"


SPEAKING_TOOLS: Final[tuple[AnyTool, ...]] = (with_progress, with_logging, logging_tool, reconnection)
