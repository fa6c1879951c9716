"""@tool in modules whose annotations are text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from pydantic import BaseModel, Field

from axolotl_core import Context, IStreamTool, ITool, tool, tools_of
from tests.support.core.sample_tools import call


class Point(BaseModel):
    """Defined in this module, named in annotations only."""

    x: int
    next: Point | None = None


@tool
async def shift(point: Point, by: Annotated[int, Field(description="How far")] = 1) -> Point:
    """Move a point."""
    return Point(x=point.x + by)


@tool
async def who(ctx: Context) -> str:
    """Tell the request."""
    return str(ctx.request_id)


@tool
async def count(to: int) -> AsyncIterator[str]:
    """Count."""
    for number in range(to):
        yield str(number)


class Shifter:
    """Has a tool as a method."""

    @tool
    async def shift(self, point: Point) -> Point:
        return point


class Identity(ITool[Point, Point]):
    name = "identity"

    async def execute(self, arguments: Point, context: Context) -> Point:
        return arguments


class Walk(IStreamTool[Point, int]):
    name = "walk"

    async def stream(self, arguments: Point, context: Context) -> AsyncIterator[int]:
        yield arguments.x


async def test_models_are_found_by_their_written_names() -> None:
    """Annotations that are text are read in the module of the function."""
    assert await call(shift, point={"x": 1}, by=2) == Point(x=3)
    assert shift.input_schema["properties"]["by"]["description"] == "How far"
    assert shift.output_model is Point


async def test_the_context_is_found_by_its_written_name() -> None:
    """The context is injected although its annotation is text."""
    assert await call(who, Context(request_id=9)) == "9"


async def test_streams_are_found_by_their_written_names() -> None:
    """The item type of a generator is read from text."""
    assert count.output_model is str
    assert await call(count, to=3) == "012"


async def test_methods_read_written_names_too() -> None:
    """The annotations of a method are read in its module."""
    (bound,) = tools_of(Shifter())
    assert await call(bound, point={"x": 5}) == Point(x=5)


async def test_classes_read_their_models_as_ever() -> None:
    """Type arguments of a class are not annotations and stay unchanged."""
    assert (Identity.input_model, Identity.output_model) == (Point, Point)
    assert (Walk.input_model, Walk.output_model) == (Point, list[int])
    assert await call(Walk(), x=4) == [4]
