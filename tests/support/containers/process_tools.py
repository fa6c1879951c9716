"""Tools for tool processes: good ones, and ones that only a separate process survives."""

import asyncio
import contextvars
import math
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, ITool, ToolError, tool
from axolotl_core.calls.scope import current_call

MEMORY_BYTES = 2**30
_user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")
_LONG = {"timeout_seconds": 60}


class Point(BaseModel):
    x: int
    y: int = 0


class Mirror(ITool[Point, Point]):
    """Takes and returns models."""

    name = "mirror"
    execution = "process"

    async def execute(self, arguments: Point, context: Context) -> Point:
        await asyncio.sleep(0)
        return Point(x=arguments.y, y=arguments.x)


@tool(execution="process")
def whoami(context: Context) -> dict[str, Any]:
    assert context.remaining_seconds is not None
    return {
        "pid": os.getpid(),
        "subject": context.principal.subject,
        "id": context.request_id,
        "remaining": context.remaining_seconds,
        "meta": dict(context.meta),
    }


@tool(execution="process")
def average() -> float:
    return math.nan


@tool(execution="process")
def speak(context: Context) -> str:
    context.report_progress(1, 2, "half")
    context.log("warning", {"half": True})
    context.report_progress(2, 2, "whole")
    return "spoken"


@tool(execution="process")
def chatter(context: Context) -> str:
    """Start a thread that sends messages after the end of the call."""

    def late() -> None:
        over.wait()
        context.report_progress(2)

    over = threading.Event()
    thread = threading.Thread(target=late)
    thread.start()
    threading.Timer(0.05, over.set).start()
    return "said"


@tool(execution="process", timeout_seconds=0.4, max_timeout_seconds=20)
def report_often(path: str, context: Context) -> str:
    """Report progress while a file does not exist."""
    number = 0
    while not Path(path).exists():
        number += 1
        context.report_progress(number)
        threading.Event().wait(0.02)
    return "found"


@tool(execution="process")
async def ask(context: Context) -> str:
    return str((await context.ask(Point, "where?")).x)


@tool(execution="process")
def complain() -> str:
    raise ToolError("not today", meta={"when": "later"})


@tool(execution="process")
def fail() -> str:
    raise ValueError("the secret of the worker")


@tool(execution="process")
def leave(code: int) -> str:
    os._exit(code)


@tool(execution="process")
def leave_a_child(path: str) -> str:
    """Crash with a running child process."""
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    _note(path, f"{child.pid}")
    os._exit(5)


@tool(execution="process")
def quit_politely() -> str:
    sys.exit(3)


@tool(execution="process")
def segfault() -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "never"


@tool(execution="process", timeout_seconds=0.5)
def spin(path: str) -> str:
    """Never end and never wait."""
    _note(path, f"{os.getpid()}")
    while True:
        pass


@tool(execution="process", timeout_seconds=0.5)
def match(path: str) -> bool:
    """Never end and hold the interpreter lock."""
    _note(path, f"{os.getpid()}")
    return re.fullmatch("(a+)+", "a" * 60 + "b") is not None


@tool(execution="process", timeout_seconds=0.5)
def have_children(path: str) -> str:
    """Wait for a child process that never ends."""
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    _note(path, f"{child.pid}")
    child.wait()
    return "never"


@tool(execution="process")
def devour() -> int:
    return len(bytearray(MEMORY_BYTES))


@tool(execution="process")
def recurse() -> int:
    return recurse() + 1


@tool(execution="process")
def forget_to_await() -> Any:
    return asyncio.sleep(0)


@tool(execution="process")
def unsendable() -> Any:
    return {"lock": threading.Lock()}


@contextmanager
def noting(path: str) -> Iterator[str]:
    """Record in a file how it ended."""
    try:
        yield current_call().principal.subject
    except BaseException as error:
        _note(path, type(error).__name__)
        raise
    else:
        _note(path, "well")


@asynccontextmanager
async def noting_later(path: str) -> AsyncIterator[str]:
    """The same, asynchronously."""
    with noting(path) as subject:
        yield subject
        await asyncio.sleep(0)


class Scoped(ITool[Point, str]):
    """Uses per-call resources in a process."""

    name = "scoped"
    execution = "process"

    def __init__(self, path: str) -> None:
        self._path = path

    async def execute(self, arguments: Point, context: Context) -> str:
        await context.enter(self._later)
        subject: str = await context.enter(self._plain)
        if arguments.x:
            raise ToolError("no")
        return subject

    def _later(self) -> Any:
        return noting_later(self._path)

    def _plain(self) -> Any:
        return noting(self._path)


class Unloadable(ITool[Point, str]):
    """Can be pickled, but not unpickled."""

    name = "unloadable"
    execution = "process"

    def __init__(self) -> None:
        self.home = os.getpid()

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["home"] != os.getpid():
            raise RuntimeError("far from home")
        self.__dict__.update(state)

    async def execute(self, arguments: Point, context: Context) -> str:
        return "never"


class Deadly(Unloadable):
    """Ends every process that loads it."""

    name = "deadly"

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["home"] != os.getpid():
            os._exit(9)
        self.__dict__.update(state)


@tool(execution="process")
def remember(user: str) -> str:
    """Return the value that an earlier call stored."""
    before = _user.get()
    _user.set(user)
    return before


@tool(execution="process")
async def remember_later(user: str) -> str:
    """The same on the loop."""
    return remember.function(user)


class Container(containers.DeclarativeContainer):
    """A container for servers in separate processes."""

    settings = providers.Object({"tools": {"spin": _LONG, "match": _LONG}})
    tools = providers.List(*map(providers.Object, (whoami, spin, match)))


def _note(path: str, text: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{text}\n")
