from datetime import date
from typing import Annotated

from dependency_injector import containers, providers
from pydantic import BaseModel, ConfigDict, Field

from axolotl_core import Context, ITool, tool


@tool
async def book(day: date, people: Annotated[int, Field(ge=1, le=8)], window: bool = False) -> str:
    """Book a table.

    Args:
        day: The day, as 2026-12-31.
        people: How many come.
        window: Whether it must be a table at the window.
    """
    return f"{people} on {day:%A}"


@tool(coerce_arguments=True)
async def book_kindly(day: date, people: int) -> str:
    """Book a table; accepts `"4"` for 4."""
    return f"{people} on {day:%A}"


# region extra
class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")

    kind: str


class Record(ITool[Anything, str]):
    name = "record"
    description = "Record an event with whatever fields it has."

    async def execute(self, arguments: Anything, context: Context) -> str:
        return ", ".join([arguments.kind, *sorted(arguments.model_extra or {})])


# endregion extra


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(book), providers.Object(book_kindly), providers.Singleton(Record))
