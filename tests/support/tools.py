"""Tools that a test can observe and control."""

import asyncio
from collections.abc import Sequence
from typing import Any

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, ITool, NoArguments, ToolError, tool
from axolotl_core.layers import Layer


class Text(BaseModel):
    text: str = ""


class Echo(ITool[Text, str]):
    name = "echo"

    async def execute(self, arguments: Text, context: Context) -> str:
        return arguments.text


class Name(BaseModel):
    """A form with one field."""

    name: str


@tool
async def echo(text: str) -> str:
    """Return a text."""
    return text


@tool
async def ask_name(context: Context) -> str:
    """Ask a question and return the answer."""
    return (await context.ask(Name, "Who?")).name


@tool
async def refuse(word: str) -> str:
    """Fail with a text that the model sees."""
    raise ToolError(word)


@tool
async def crash(word: str) -> str:
    """Fail with a text that the model does not see."""
    raise ValueError(word)


class Probe(ITool[NoArguments, str]):
    """Reports when it runs and how it ended, and waits until it is released."""

    name = "probe"

    def __init__(self, *, progress: bool = False) -> None:
        self.progress = progress
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.release = asyncio.Event()
        self.context: Context | None = None

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        self.context = context
        self.started.set()
        if self.progress:
            context.report_progress(1)
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "done"


class Holding(ITool[Text, str]):
    """Keeps its calls until they are released."""

    name = "holding"

    def __init__(self) -> None:
        self.running = 0
        self.release = asyncio.Event()

    async def execute(self, arguments: Text, context: Context) -> str:
        self.running += 1
        await self.release.wait()
        return "held"


def container_of(
    *tools: ITool[Any, Any], layers: Sequence[Layer] = (), settings: Any = None
) -> containers.DynamicContainer:
    """Create a container with tools."""
    container = containers.DynamicContainer()
    container.tools = providers.Object(tools)
    container.layers = providers.Object(layers)
    container.settings = providers.Object(settings or {})
    return container
