import asyncio
from collections.abc import AsyncIterator

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, IStreamTool, tool


# region class
class Topic(BaseModel):
    topic: str = Field(description="What the poem is about.")


class Recite(IStreamTool[Topic, str]):
    name = "recite"
    description = "Recite a very short poem."

    async def stream(self, arguments: Topic, context: Context) -> AsyncIterator[str]:
        for line in (f"Oh {arguments.topic},\n", "how you shine!\n"):
            await asyncio.sleep(0)
            yield line


# endregion class


# region function
@tool
async def count(to: int) -> AsyncIterator[int]:
    """Count from one."""
    for number in range(1, to + 1):
        await asyncio.sleep(0)
        yield number


# endregion function


# region progress
@tool
async def report(orders: list[str], context: Context) -> AsyncIterator[str]:
    """Write a report about orders."""
    yield "Report\n"
    for number, order in enumerate(orders, 1):
        context.report_progress(number, len(orders), f"order {number} of {len(orders)}")
        yield f"- {order}\n"


# endregion progress


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(Recite), providers.Object(count), providers.Object(report))
