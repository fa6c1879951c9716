import asyncio
from typing import Literal

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, tool


# region tool
@tool(task_support="optional", timeout_seconds=3600)
async def render(film: str, context: Context) -> str:
    """Render a film."""
    for scene in range(1, 4):
        await asyncio.sleep(0.01)
        context.report_progress(scene, 3)
    return f"{film} is ready"


# endregion tool


# region asking
class Format(BaseModel):
    format: Literal["cinema", "television"]


@tool(task_support="required", timeout_seconds=3600)
async def cut(film: str, context: Context) -> str:
    """Cut a film in the format its producer chooses."""
    await asyncio.sleep(0.01)
    wanted = await context.ask(Format, f"Which format should {film} have?", key="format")
    return f"{film} is cut for {wanted.format}"


# endregion asking


# region detach
@tool(task_support="detached", timeout_seconds=3600)
async def print_copies(film: str, context: Context) -> str:
    """Ask how the copies are made, then make them in the background."""
    wanted = await context.ask(Format, f"Which format should the copies of {film} have?", key="format")
    await context.detach()
    await asyncio.sleep(0.01)
    return f"{film} is printed for {wanted.format}"


# endregion detach


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(render), providers.Object(cut), providers.Object(print_copies))
