"""Tools that run as tasks, for both designs of tasks."""

from axolotl_core import ProtocolError, ToolError, tool
from axolotl_core.errors import InvalidRequest


@tool(task_support="optional")
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@tool(task_support="optional")
async def refuse() -> str:
    """Fail with a message for the model."""
    raise ToolError("no such luck")


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
