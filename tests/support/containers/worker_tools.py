"""Tools for worker processes: they identify their process, ask, wait and are stopped."""

import asyncio
import os
from pathlib import Path

from dependency_injector import containers, providers

from axolotl_core import Context, ResourceRegistry, resource, tool
from tests.support.tools import Name


@tool
async def whoami() -> int:
    """Return the process id."""
    return os.getpid()


@tool
async def greet(context: Context) -> str:
    """Ask once."""
    return f"Hello, {(await context.ask(Name, 'Who?')).name}!"


@tool
async def work(pipe: str, context: Context) -> str:
    """Report progress, and end when a pipe is opened and closed."""
    context.report_progress(1)
    text = await asyncio.to_thread(Path(pipe).read_text, encoding="utf-8")
    context.report_progress(2)
    return text


@tool
async def hang(trace: str, context: Context) -> str:
    """Wait until stopped, and record it."""
    context.report_progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        _leave(trace)
    return "never"


def _leave(trace: str) -> None:
    Path(trace).write_text("stopped", encoding="utf-8")


@resource("note://one")
async def note() -> str:
    """Return a note."""
    return "note"


class Touch:
    """Notifies subscribers that the note changed."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry

    @tool
    async def touch(self) -> str:
        """Notify subscribers that the note changed."""
        self._registry.updated("note://one")
        return "told"


class Container(containers.DeclarativeContainer):
    resource_registry = providers.Singleton(ResourceRegistry)
    touching = providers.Singleton(Touch, resource_registry)
    tools = providers.List(
        *map(providers.Object, (whoami, greet, work, hang)), providers.Callable(lambda one: one.touch, touching)
    )
    resources = providers.List(providers.Object(note))
