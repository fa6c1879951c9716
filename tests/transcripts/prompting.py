"""Prompts with every kind of definition, argument and message."""

from datetime import date
from enum import StrEnum
from typing import Literal

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, IPrompt, NoArguments, PromptMessage, ToolError, prompt
from axolotl_core.content import (
    Annotations,
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResource,
)
from axolotl_core.prompts import PromptOutput, PromptResult
from axolotl_core.protocol.identity import Icon

ICON = Icon("data:image/png;base64,AA==", "image/png", ("48x48",), "light")


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Order(BaseModel):
    dish: str = Field(title="Dish", description="what to cook")
    servings: int = Field(2, ge=1)
    spicy: bool = False
    style: Literal["plain", "fancy"] = "plain"
    size: Size = Size.SMALL
    day: date | None = None


class Recipe(IPrompt[Order]):
    name = "recipe"
    title = "A recipe"
    description = "Ask for a recipe"
    icons = (ICON,)
    meta = {"example.com/kitchen": True}  # noqa: RUF012

    async def render(self, arguments: Order, context: Context) -> PromptOutput:
        when = "" if arguments.day is None else f" on {arguments.day:%A}"
        heat = "spicy" if arguments.spicy else "mild"
        return (
            f"Cook {arguments.dish} for {arguments.servings}, {heat}, {arguments.style}, {arguments.size.value}{when}"
        )


class Gallery(IPrompt[NoArguments]):
    name = "gallery"

    async def render(self, arguments: NoArguments, context: Context) -> PromptOutput:
        noted = Annotations(("user",), 0.5, "2025-01-01T00:00:00Z")
        return [
            "plain words",
            TextContent("words", noted, {"example.com/n": 1}),
            PromptMessage("assistant", ImageContent(b"\x00\x01", "image/png")),
            AudioContent(b"\x02\x03", "audio/wav"),
            EmbeddedResource(TextResource("file:///a.txt", "inside", "text/plain", {"example.com/n": 2})),
            ResourceLink("file:///b.txt", "b", title="B", icons=(ICON,)),
        ]


class Whole(IPrompt[NoArguments]):
    name = "whole"

    async def render(self, arguments: NoArguments, context: Context) -> PromptOutput:
        said = (PromptMessage("user", TextContent("Why?")), PromptMessage("assistant", "Because."))
        return PromptResult(said, "A short talk", {"example.com/took": 5})


@prompt
def greet(name: str, context: Context) -> str:
    """Greet somebody.

    Args:
        name: whom to greet
    """
    client = context.client
    return f"{name} says hello to {'nobody' if client is None else client.name}"


class Refuse(IPrompt[NoArguments]):
    name = "refuse"

    async def render(self, arguments: NoArguments, context: Context) -> PromptOutput:
        raise ToolError("The kitchen is closed", meta={"example.com/opens": "noon"})


class Crash(IPrompt[NoArguments]):
    name = "crash"

    async def render(self, arguments: NoArguments, context: Context) -> PromptOutput:
        raise RuntimeError("the password is swordfish")


class Lie(IPrompt[NoArguments]):
    name = "lie"

    async def render(self, arguments: NoArguments, context: Context) -> PromptOutput:
        return 5  # type: ignore[return-value]


class Container(containers.DeclarativeContainer):
    """A server with only prompts."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    prompts = providers.List(
        providers.Singleton(Recipe),
        providers.Singleton(Gallery),
        providers.Singleton(Whole),
        providers.Object(greet),
        providers.Singleton(Refuse),
        providers.Singleton(Crash),
        providers.Singleton(Lie),
    )
