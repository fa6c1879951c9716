"""Containers for transcripts: tools with every kind of definition, output and failure."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, IStreamTool, ITool, NoArguments, ToolAnnotations, ToolError, tool
from axolotl_core.content import (
    Annotations,
    AudioContent,
    BlobResource,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResource,
    ToolResult,
)
from axolotl_core.protocol.identity import Icon
from axolotl_core.tools.schema_tool import SchemaTool

ICON = Icon("data:image/png;base64,AA==", "image/png", ("48x48",), "light")


class Text(BaseModel):
    text: str


class Pair(BaseModel):
    a: int = Field(description="the first number")
    b: int = 2


class Sum(BaseModel):
    total: int


class Steps(BaseModel):
    values: list[float]


class Echo(ITool[Text, str]):
    name = "echo"
    description = "Repeat a text"

    async def execute(self, arguments: Text, context: Context) -> str:
        return arguments.text


class Add(ITool[Pair, Sum]):
    name = "add"
    title = "Adder"
    description = "Add two numbers"
    annotations = ToolAnnotations(read_only=True, open_world=False)
    icons = (ICON,)
    meta = {"example.com/cost": 1}  # noqa: RUF012

    async def execute(self, arguments: Pair, context: Context) -> Sum:
        return Sum(total=arguments.a + arguments.b)


class Nothing(ITool[NoArguments, None]):
    name = "nothing"
    description = "Say nothing"

    async def execute(self, arguments: NoArguments, context: Context) -> None:
        return None


class Squares(ITool[NoArguments, list[int]]):
    name = "squares"
    description = "List squares"
    annotations = ToolAnnotations(title="Square numbers", idempotent=True)
    title = "Squares"

    async def execute(self, arguments: NoArguments, context: Context) -> list[int]:
        return [1, 4, 9]


class Answer(ITool[NoArguments, int]):
    name = "answer"
    description = "Give a number"

    async def execute(self, arguments: NoArguments, context: Context) -> int:
        return 42


class Picture(ITool[NoArguments, ImageContent]):
    name = "picture"
    description = "Give a single block"

    async def execute(self, arguments: NoArguments, context: Context) -> ImageContent:
        return ImageContent(b"\x89PNG", "image/png")


class Gallery(ITool[NoArguments, list[ContentBlock]]):
    name = "gallery"
    description = "Give every kind of block"

    async def execute(self, arguments: NoArguments, context: Context) -> list[ContentBlock]:
        noted = Annotations(("user",), 0.5, "2025-01-01T00:00:00Z")
        return [
            TextContent("words", noted, {"example.com/n": 1}),
            ImageContent(b"\x00\x01", "image/png"),
            AudioContent(b"\x02\x03", "audio/wav", noted),
            EmbeddedResource(TextResource("file:///a.txt", "inside", "text/plain", {"example.com/n": 2})),
            EmbeddedResource(BlobResource("file:///a.bin", b"\xff")),
            ResourceLink("file:///b.txt", "b", title="B", mime_type="text/plain", size=3, icons=(ICON,)),
        ]


class Whole(ITool[NoArguments, ToolResult]):
    name = "whole"
    description = "Decide about every part of the result"

    async def execute(self, arguments: NoArguments, context: Context) -> ToolResult:
        return ToolResult((TextContent("done"),), Sum(total=3), meta={"example.com/took": 5})


class WholeError(ITool[NoArguments, ToolResult]):
    name = "whole_error"
    description = "Give a result that is an error"

    async def execute(self, arguments: NoArguments, context: Context) -> ToolResult:
        return ToolResult((TextContent("no luck"),), [1], is_error=True)


class Words(IStreamTool[Text, str]):
    name = "words"
    description = "Stream text"

    async def stream(self, arguments: Text, context: Context) -> AsyncIterator[str]:
        for word in arguments.text.split():
            yield word + "."


@tool
async def countdown(start: int) -> AsyncIterator[int]:
    """Stream numbers.

    Args:
        start: where to begin
    """
    for number in range(start, 0, -1):
        yield number


@tool(execution="thread")
def shout(text: str, context: Context) -> str:
    """Work in a thread."""
    context.report_progress(0.5, 1, "loud")
    return text.upper()


class Climb(ITool[Steps, str]):
    name = "climb"
    description = "Report progress"

    async def execute(self, arguments: Steps, context: Context) -> str:
        for value in arguments.values:
            context.report_progress(value, 10, f"at {value:g}")
        return "there"


class Refuse(ITool[NoArguments, str]):
    name = "refuse"
    description = "Raise what the model may read"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        raise ToolError("The moon is not made of cheese", meta={"example.com/why": "geology"})


class Crash(ITool[NoArguments, str]):
    name = "crash"
    description = "Raise what nobody may read"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        raise RuntimeError("the password is swordfish")


class Lie(ITool[NoArguments, Sum]):
    name = "lie"
    description = "Break its own promise"

    async def execute(self, arguments: NoArguments, context: Context) -> Sum:
        return {"total": "swordfish"}  # type: ignore[return-value]


class LieInside(ITool[NoArguments, Sum]):
    name = "lie_inside"
    description = "Break its own promise within a model that was never validated"

    async def execute(self, arguments: NoArguments, context: Context) -> Sum:
        return Sum.model_construct(total="swordfish")  # type: ignore[arg-type]


class Opaque(ITool[NoArguments, Any]):
    name = "opaque"
    description = "Give something that JSON has no form for"

    async def execute(self, arguments: NoArguments, context: Context) -> Any:
        return {"thing": object()}


class Knot(ITool[NoArguments, Any]):
    name = "knot"
    description = "Give something that holds itself"

    async def execute(self, arguments: NoArguments, context: Context) -> Any:
        knot: list[Any] = []
        knot.append(knot)
        return knot


class Abyss(ITool[NoArguments, str]):
    name = "abyss"
    description = "Call itself without end"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return await self.execute(arguments, context)


class Sleepy(ITool[NoArguments, str]):
    name = "sleepy"
    description = "Miss the deadline"
    timeout_seconds = 0.05

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        await asyncio.Event().wait()
        return "awake"


class WhoAmI(ITool[NoArguments, str]):
    name = "who_am_i"
    description = "Name the caller"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return "nobody" if context.client is None else f"{context.client.name} {context.client.version}"


class Gate:
    """Blocks calls until another call opens it."""

    def __init__(self) -> None:
        self._opened: asyncio.Event | None = None

    async def wait(self) -> None:
        self._opened = self._opened or asyncio.Event()
        await self._opened.wait()

    def open(self) -> None:
        if self._opened is not None:
            self._opened.set()
        self._opened = None


class Hold(ITool[NoArguments, str]):
    name = "hold"
    description = "Report that it runs, then wait"

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        context.report_progress(1)
        await self._gate.wait()
        return "released"


class Release(ITool[NoArguments, None]):
    name = "release"
    description = "End the waiting"

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def execute(self, arguments: NoArguments, context: Context) -> None:
        self._gate.open()


RAW_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "properties": {"size": {"type": "integer", "minimum": 1}, "kind": {"enum": ["a", "b"]}},
    "required": ["size"],
}


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"measured": arguments}


@tool
async def paint(colour: Annotated[str, Field(description="a name")], coats: int = 1) -> str:
    """Paint the wall.

    Args:
        colour: unused, for the annotation says it
        coats: how often
    """
    return f"{colour} x{coats}"


class Container(containers.DeclarativeContainer):
    """Every kind of tool."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}})
    gate = providers.Singleton(Gate)
    tools = providers.List(
        providers.Singleton(Echo),
        providers.Singleton(Add),
        providers.Singleton(Nothing),
        providers.Singleton(Squares),
        providers.Singleton(Answer),
        providers.Singleton(Picture),
        providers.Singleton(Gallery),
        providers.Singleton(Whole),
        providers.Singleton(WholeError),
        providers.Singleton(Words),
        providers.Object(countdown),
        providers.Object(shout),
        providers.Singleton(Climb),
        providers.Singleton(Refuse),
        providers.Singleton(Crash),
        providers.Singleton(Lie),
        providers.Singleton(LieInside),
        providers.Singleton(Opaque),
        providers.Singleton(Knot),
        providers.Singleton(Abyss),
        providers.Singleton(Sleepy),
        providers.Singleton(WhoAmI),
        providers.Singleton(Hold, gate),
        providers.Singleton(Release, gate),
        providers.Singleton(SchemaTool, "measure", RAW_SCHEMA, measure, description="Check a raw schema"),
    )


class Listing(containers.DeclarativeContainer):
    """A few tools with complete definitions."""

    settings = providers.Object(
        {
            "server": {
                "name": "transcripts",
                "version": "1",
                "title": "Transcripts",
                "description": "Tools to list",
                "website_url": "https://example.com",
                "instructions": "Ask, then listen.",
            }
        }
    )
    tools = providers.List(
        providers.Singleton(Echo),
        providers.Singleton(Add),
        providers.Singleton(Squares),
        providers.Object(paint),
        providers.Singleton(SchemaTool, "measure", RAW_SCHEMA, measure),
    )


class OtherChoices(containers.DeclarativeContainer):
    """Non-default settings for behavior that the protocol leaves open."""

    settings = providers.Object(
        {
            "server": {"name": "transcripts", "version": "1"},
            "protocol": {
                "unknown_tool": "invalid_params",
                "invalid_arguments": "result",
                "require_initialized": False,
            },
            "tools": {"coerce_arguments": True, "nothing": {"enabled": False}},
        }
    )
    tools = providers.List(providers.Singleton(Echo), providers.Singleton(Add), providers.Singleton(Nothing))


class AlwaysIsError(Container):
    """Every kind of tool; each result says whether the tool failed."""

    settings = providers.Object({"server": {"name": "transcripts", "version": "1"}, "protocol": {"is_error": "always"}})


class Strictest(containers.DeclarativeContainer):
    """The opposite settings, in every revision."""

    settings = providers.Object(
        {
            "server": {"name": "transcripts", "version": "1"},
            "protocol": {"unknown_tool": "method_not_found", "invalid_arguments": "error"},
        }
    )
    tools = providers.List(providers.Singleton(Echo))
