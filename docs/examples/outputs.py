from dataclasses import dataclass
from typing import Any

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import tool
from axolotl_core.content import ContentBlock, ImageContent, ResourceLink, TextContent, ToolResult

PIXEL = bytes.fromhex("89504e470d0a1a0a")


class Sum(BaseModel):
    total: int


@dataclass
class Point:
    x: int
    y: int


@tool
async def give_text() -> str:
    """Text."""
    return "hello"


@tool
async def give_nothing() -> None:
    """Nothing."""


@tool
async def give_model() -> Sum:
    """A pydantic model."""
    return Sum(total=3)


@tool
async def give_dataclass() -> Point:
    """A dataclass, a TypedDict, an enum: any type that pydantic can serialize."""
    return Point(1, 2)


@tool
async def give_list() -> list[int]:
    """Any other JSON type."""
    return [1, 2, 3]


@tool
async def give_anything() -> Any:
    """No declared type, so no output schema."""
    return {"total": 3}


@tool
async def give_block() -> ImageContent:
    """One content block."""
    return ImageContent(PIXEL, "image/png")


# region blocks
@tool
async def give_blocks() -> list[ContentBlock]:
    """Several content blocks."""
    return [
        TextContent("Here is the report:"),
        ResourceLink("https://example.com/report.pdf", "report.pdf", mime_type="application/pdf"),
    ]


# endregion blocks


# region whole
@tool
async def give_result() -> ToolResult:
    """A complete result: content, structured content, error flag and `_meta`."""
    return ToolResult(
        content=[TextContent("3 rows, 1 of them broken")],
        structured={"rows": 3, "broken": 1},
        is_error=True,
        meta={"example.com/took-ms": 12},
    )


# endregion whole


class Container(containers.DeclarativeContainer):
    tools = providers.List(
        providers.Object(give_text),
        providers.Object(give_nothing),
        providers.Object(give_model),
        providers.Object(give_dataclass),
        providers.Object(give_list),
        providers.Object(give_anything),
        providers.Object(give_block),
        providers.Object(give_blocks),
        providers.Object(give_result),
    )
