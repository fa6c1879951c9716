"""Tools in tool processes that several tools share."""

import asyncio
import contextvars
import gc
import os
from pathlib import Path
from typing import Any

from axolotl_core import ITool, NoArguments, ToolContext, tool

_user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


@tool(execution="process", pool="one")
def pid() -> int:
    return os.getpid()


@tool(execution="process", pool="one")
async def pid_later() -> int:
    await asyncio.sleep(0)
    return os.getpid()


@tool(execution="process", pool="other")
def pid_elsewhere() -> int:
    return os.getpid()


@tool(execution="process")
def pid_alone() -> int:
    return os.getpid()


@tool(execution="process", pool="one", timeout_seconds=60)
def hold(path: str, gate: str) -> int:
    """Report the process id, and block until a pipe is written to."""
    Path(path).write_text(f"{os.getpid()}\n")
    with Path(gate).open() as file:
        file.read(1)
    return os.getpid()


@tool(execution="process", pool="one")
def leave() -> None:
    os._exit(7)


@tool(execution="process", pool="one")
def remember(user: str) -> str:
    """Return the value that an earlier call stored."""
    before = _user.get()
    _user.set(user)
    return before


@tool(execution="process", pool="one")
async def remember_later(user: str) -> str:
    """The same on the loop."""
    return remember.function(user)


class Numbered(ITool[NoArguments, int]):
    """One of many tools that are added and removed."""

    execution = "process"
    pool = "one"

    def __init__(self, number: int) -> None:
        self.name = f"numbered_{number}"

    async def execute(self, arguments: NoArguments, context: ToolContext) -> int:
        return sum(isinstance(one, Numbered) for one in gc.get_objects())


class Deadly(ITool[NoArguments, int]):
    """Ends every process that loads it."""

    name = "deadly"
    execution = "process"
    pool = "one"

    def __init__(self) -> None:
        self.home = os.getpid()

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["home"] != os.getpid():
            os._exit(9)
        self.__dict__.update(state)

    async def execute(self, arguments: NoArguments, context: ToolContext) -> int:
        return 0
