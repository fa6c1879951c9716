"""A container for server processes, with tools that run as tasks."""

import asyncio
from pathlib import Path

from dependency_injector import containers, providers

from axolotl_core import Context, tool


@tool(task_support="optional")
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@tool(task_support="optional")
async def linger(path: str, context: Context) -> str:
    """Never end, and record the reason when stopped."""
    context.report_progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        leave_note(path, str(context.cancel_reason))
    return "never"


def leave_note(path: str, text: str) -> None:
    Path(path).write_text(text)


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(greet), providers.Object(linger))
    settings = providers.Object({"http": {"drain_seconds": 0.1}})
