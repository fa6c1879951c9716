"""Tools that run as tasks, for both designs of tasks."""

import asyncio
from typing import Any

from pydantic import BaseModel

from axolotl_core import Context, ProtocolError, ToolError, tool
from axolotl_core.content import TextContent, ToolResult
from axolotl_core.errors import InvalidRequest


class Decision(BaseModel):
    """Whether to go on."""

    confirm: bool


@tool(task_support="optional")
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@tool(task_support="optional")
async def whole() -> ToolResult:
    """Return a result with every member, including very large numbers."""
    return ToolResult((TextContent("x"),), {"big": 2**80, "half": 0.5}, meta={"example.com/own": 1})


@tool(task_support="optional")
async def inquire(context: Context) -> str:
    """Ask before anything is done."""
    return f"confirmed: {(await context.ask(Decision, 'Sure?', key='sure')).confirm}"


@tool(task_support="optional")
async def refuse() -> str:
    """Fail with a message for the model."""
    raise ToolError("no such luck")


@tool(task_support="optional", timeout_seconds=0.01)
async def overrun() -> None:
    """Exceed the timeout."""
    await asyncio.Event().wait()


@tool(task_support="optional")
async def crash() -> str:
    """Fail with a hidden error."""
    raise RuntimeError("secret")


@tool(task_support="optional")
async def break_off() -> str:
    """Fail with a protocol error."""
    raise InvalidRequest("broken off", data={"piece": 3})


@tool(task_support="optional")
async def mumble() -> str:
    """Fail with an error that cannot be encoded."""
    raise ProtocolError("mumbled", data=object())


TOOLS = (greet, whole, inquire, refuse, overrun, crash, break_off, mumble)


def content_of(result: Any) -> str:
    """Return the text of a result."""
    return str(result["content"][0]["text"])
