"""Stream tools: the pieces become one result."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import Context, IStreamTool, NoArguments, ToolError, tool
from axolotl_core.content import ImageContent, TextContent
from axolotl_core.registry import AnyTool
from tests.support.core.callers import Caller
from tests.support.core.sample_tools import call


class Word(BaseModel):
    text: str


class Items(BaseModel):
    items: list[str] = []


class Chat(IStreamTool[Items, str]):
    name = "chat"

    async def stream(self, arguments: Items, context: Context) -> AsyncIterator[str]:
        for item in arguments.items:
            yield item


class Words(IStreamTool[Items, Word]):
    name = "words"

    async def stream(self, arguments: Items, context: Context) -> AsyncIterator[Word]:
        for item in arguments.items:
            yield Word(text=item)


class Mixed(IStreamTool[Items, str | Word]):
    name = "mixed"

    async def stream(self, arguments: Items, context: Context) -> AsyncIterator[str | Word]:
        for item in arguments.items:
            yield item


class Blocks(IStreamTool[Items, TextContent]):
    name = "blocks"

    async def stream(self, arguments: Items, context: Context) -> AsyncIterator[TextContent]:
        for item in arguments.items:
            yield TextContent(item)


class Anything(IStreamTool[Items, Any]):
    name = "anything"

    async def stream(self, arguments: Items, context: Context) -> AsyncIterator[Any]:
        for item in arguments.items:
            yield item


class LoudChat(Chat):
    """Inherits everything."""


@tool
async def chat(items: list[str]) -> AsyncIterator[str]:
    for item in items:
        yield item


@tool
async def words(items: list[str]) -> AsyncGenerator[Word, None]:
    for item in items:
        yield Word(text=item)


@tool
async def mixed(items: list[str]) -> AsyncIterator[str | Word]:
    for item in items:
        yield item


@tool
async def blocks(items: list[str]) -> AsyncIterator[TextContent | ImageContent]:
    for item in items:
        yield TextContent(item)


@tool
async def anything(items: list[str]):  # type: ignore[no-untyped-def]
    for item in items:
        yield item


def as_words(items: list[str]) -> list[Word]:
    return [Word(text=item) for item in items]


def as_blocks(items: list[str]) -> list[TextContent]:
    return [TextContent(item) for item in items]


@pytest.mark.parametrize(
    "items",
    [pytest.param(["a", "b", "c"], id="three"), pytest.param(["a"], id="one"), pytest.param([], id="empty")],
)
@pytest.mark.parametrize(
    ("streaming", "declared", "gather"),
    [
        pytest.param(Chat(), str, "".join, id="class-of-text"),
        pytest.param(LoudChat(), str, "".join, id="inherited"),
        pytest.param(Words(), list[Word], as_words, id="class-of-models"),
        pytest.param(Mixed(), list[str | Word], list, id="class-of-either"),
        pytest.param(Blocks(), list[TextContent], as_blocks, id="class-of-blocks"),
        pytest.param(chat, str, "".join, id="function-of-text"),
        pytest.param(words, list[Word], as_words, id="function-of-models"),
        pytest.param(mixed, list[str | Word], list, id="function-of-either"),
        pytest.param(blocks, list[TextContent | ImageContent], as_blocks, id="function-of-blocks"),
    ],
)
async def test_a_stream_is_buffered_by_its_item_type(
    streaming: AnyTool, declared: Any, gather: Callable[[list[str]], Any], items: list[str]
) -> None:
    """Text is joined to one text, anything else becomes a list, and the empty stream keeps that type."""
    assert streaming.output_model == declared
    assert await call(streaming, items=items) == gather(items)


@pytest.mark.parametrize("streaming", [pytest.param(Anything(), id="class"), pytest.param(anything, id="function")])
async def test_a_stream_of_any_is_buffered_by_its_items(streaming: AnyTool) -> None:
    """Where no item type is declared, text is joined and nothing is promised."""
    assert await call(streaming, items=["a", "b"]) == "ab"
    assert await call(streaming, items=[]) == []
    assert streaming.output_schema is None


@pytest.mark.parametrize(
    ("streaming", "has_schema"),
    [
        pytest.param(Chat(), False, id="text"),
        pytest.param(Words(), True, id="models"),
        pytest.param(Blocks(), False, id="blocks"),
        pytest.param(chat, False, id="function-of-text"),
        pytest.param(words, True, id="function-of-models"),
        pytest.param(blocks, False, id="function-of-blocks"),
    ],
)
def test_only_structured_items_have_a_schema(streaming: AnyTool, has_schema: bool) -> None:
    """A stream of models publishes an array, text and blocks publish nothing."""
    schema = streaming.output_schema
    assert (schema is not None) is has_schema
    assert schema is None or schema["type"] == "array"


async def test_every_item_is_reported_as_progress() -> None:
    """Each item is reported as progress."""
    caller = Caller()
    await call(Chat(), Context(caller=caller), items=["a", "b", "c"])
    assert caller.progress == [(1, None, None), (2, None, None), (3, None, None)]


@tool
async def orders(count: int, context: Context) -> AsyncIterator[str]:
    """Report orders, after a heading."""
    yield "heading"
    for number in range(1, count + 1):
        context.report_progress(number, count, f"order {number} of {count}")
        yield "order"


async def test_own_progress_replaces_the_number_of_items() -> None:
    """A stream that reports progress itself, also after its first item, is not counted."""
    caller = Caller()
    await call(orders, Context(caller=caller), count=3)
    assert caller.progress == [(number, 3, f"order {number} of 3") for number in (1, 2, 3)]


async def test_a_failing_stream_answers_with_its_error() -> None:
    """The items before a failure are dropped."""

    @tool
    async def broken() -> AsyncIterator[str]:
        yield "a"
        raise ToolError("no more")

    with pytest.raises(ToolError, match="no more"):
        await call(broken)


def test_a_stream_runs_on_the_loop() -> None:
    """An async generator waits on the event loop."""
    assert (chat.execution, chat.suspends) == ("loop", True)


class NoInput(IStreamTool[NoArguments, int]):
    """Takes nothing."""

    name = "no-input"

    async def stream(self, arguments: NoArguments, context: Context) -> AsyncIterator[int]:
        yield 1


async def test_a_stream_may_take_no_arguments() -> None:
    """A stream tool without arguments is an ordinary tool without arguments."""
    assert NoInput.input_model is NoArguments
    assert await call(NoInput()) == [1]
