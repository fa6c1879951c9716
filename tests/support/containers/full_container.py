"""A container with every kind of feature, including questions."""

import asyncio
from datetime import date
from typing import Annotated, Literal

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, PromptMessage, ResourceNotFound, ToolError, prompt, resource, tool
from axolotl_core.content import BlobResource, TextContent, TextResource
from axolotl_core.questions.question import Titles
from axolotl_server.extension import Extension

PICTURE = b"\x89PNG\r\n\x00\xff"


class Meal(BaseModel):
    """An order."""

    size: Annotated[Literal["s", "l"], Titles("Small", "Large")] = Field("s", description="How much.")
    extras: list[Literal["salt", "oil"]] = Field([], max_length=2)
    pieces: int = Field(ge=1, le=5)
    day: date
    hot: bool = False
    note: str | None = Field(None, pattern="^[a-z]*$")


class Sure(BaseModel):
    """A confirmation."""

    sure: bool


@tool(app="ui://menu")
async def order(table: int, context: Context) -> str:
    """Order a meal.

    Args:
        table: Where to bring it.
    """
    context.log("debug", "too quiet to be heard")
    context.log("info", {"table": table}, "kitchen")
    meal = await context.ask(Meal, f"What for table {table}?")
    sure = await context.ask(Sure, "Is that all?", key="sure")
    return f"{meal.model_dump_json()} {sure.sure}"


@tool
async def confirm(context: Context) -> str:
    """Ask whether one is sure."""
    return str((await context.ask(Sure, "Really?")).sure)


@tool
async def pay(context: Context) -> str:
    """Have a page opened."""
    await context.ask_url("https://example.com/pay", "Please pay")
    return "paid"


@tool
async def think(context: Context) -> str:
    """Ask a model, and where the user works."""
    sample, roots = await asyncio.gather(
        context.sample("What is best?", max_tokens=10, system_prompt="Be brief"), context.roots()
    )
    return f"{sample.text} {' '.join(root.uri for root in roots)}"


@tool(task_support="required")
async def simmer(context: Context) -> str:
    """Take one's time, as a task."""
    return f"simmered: {(await context.ask(Sure, 'Long enough?')).sure}"


@prompt
def praise(dish: str, times: int = 1) -> str:
    """Praise a dish. At length.

    Args:
        dish: What is praised.
        times: How often.
    """
    return f"Praise {dish} {times} times."


@prompt
def talk() -> list[str | PromptMessage]:
    """Begin a conversation."""
    return ["How are you?", PromptMessage("assistant", TextContent("Fine."))]


@prompt
async def sulk(context: Context) -> str:
    """Ask, and then fail."""
    await context.ask(Sure, "Really?")
    raise ToolError("Not today.")


@resource("ui://menu")
def menu() -> str:
    """The menu."""
    return "<p>Soup</p>"


@resource("pictures://soup", mime_type="image/png", size=len(PICTURE))
def picture() -> bytes:
    """A picture of the soup."""
    return PICTURE


@resource("dishes://{name}{?lang}", title="A dish")
def dish(name: str, context: Context, lang: str = "en") -> list[TextResource | BlobResource]:
    """A dish of the menu, with its picture."""
    if name == "stone":
        raise ResourceNotFound(context.uri)
    return [TextResource(context.uri, f"{name} in {lang}"), BlobResource(f"{context.uri}#picture", PICTURE)]


class Container(containers.DeclarativeContainer):
    """Tools, prompts, resources, a template and an extension."""

    settings = providers.Object({"server": {"name": "restaurant", "version": "7"}})
    tools = providers.List(*map(providers.Object, (order, confirm, pay, think, simmer)))
    prompts = providers.List(*map(providers.Object, (praise, talk, sulk)))
    resources = providers.List(*map(providers.Object, (menu, picture, dish)))
    extensions = providers.List(providers.Singleton(Extension, "com.example/receipts", {"paper": False}))


class Reading(containers.DeclarativeContainer):
    """A server without tools."""

    prompts = providers.List(providers.Object(praise))


class Sets(containers.DeclarativeContainer):
    """Features in sets."""

    guests = providers.Container(Reading)
