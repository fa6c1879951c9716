"""Type inference for ITool, checked by mypy; running the tests proves only that the file imports."""

from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar, assert_type

from pydantic import BaseModel

from axolotl_core import Context, IStreamTool, ITool, NoArguments, ToolRegistry
from axolotl_core.content import TextContent, ToolResult
from axolotl_core.registry import AnyTool
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server import connect
from tests.support.tools import container_of

ItemT = TypeVar("ItemT")


class Pair(BaseModel):
    a: int
    b: int


class Sum(BaseModel):
    total: int


class Add(ITool[Pair, Sum]):
    name = "add"

    async def execute(self, arguments: Pair, context: Context) -> Sum:
        assert_type(arguments.a, int)
        assert_type(context.remaining_seconds, float | None)
        return Sum(total=arguments.a + arguments.b)


class PlainAdd(ITool[Pair, Sum]):
    name = "plain-add"

    def execute(self, arguments: Pair, context: Context) -> Sum:
        return Sum(total=arguments.a + arguments.b)


class PlainNothing(ITool[Pair, None]):
    name = "plain-nothing"

    def execute(self, arguments: Pair, context: Context) -> None: ...


class Page(BaseModel, Generic[ItemT]):
    items: list[ItemT]


class Paged(ITool[Pair, Page[ItemT]], Generic[ItemT]):
    name = "paged"

    async def execute(self, arguments: Pair, context: Context) -> Page[ItemT]:
        return Page(items=[])


class IntPaged(Paged[int]):
    name = "int-paged"


class Blocks(ITool[NoArguments, ToolResult]):
    name = "blocks"

    async def execute(self, arguments: NoArguments, context: Context) -> ToolResult:
        return ToolResult([TextContent("x")])


class Words(IStreamTool[Pair, str]):
    name = "words"

    async def stream(self, arguments: Pair, context: Context) -> AsyncIterator[str]:
        yield str(arguments.a)


class WrongInput(ITool[Pair, Sum]):
    async def execute(self, arguments: Sum, context: Context) -> Sum:  # type: ignore[override]
        return arguments


class WrongOutput(ITool[Pair, Sum]):
    async def execute(self, arguments: Pair, context: Context) -> Pair:  # type: ignore[override]
        return arguments


class WrongPlainOutput(ITool[Pair, Sum]):
    def execute(self, arguments: Pair, context: Context) -> Pair:  # type: ignore[override]
        return arguments


async def test_execute_is_typed_by_the_type_arguments() -> None:
    """`execute` has the input and output types of the class."""
    answer = await Add().execute(Pair(a=1, b=2), Context())
    assert_type(answer, Sum)
    assert_type(await Blocks().execute(NoArguments(), Context()), ToolResult)
    assert answer == Sum(total=3)


async def test_generic_classes_between_keep_the_types() -> None:
    """A type parameter that a subclass sets reaches the output."""
    page = await IntPaged().execute(Pair(a=1, b=2), Context())
    assert_type(page, Page[int])
    assert_type(page.items, list[int])
    assert page.items == []


def test_stream_tools_yield_their_items() -> None:
    """The stream has the type of the second type argument."""
    stream = Words().stream(Pair(a=1, b=2), Context())
    assert_type(stream, AsyncIterator[str])
    assert hasattr(stream, "__anext__")


def test_wrong_signatures_are_seen_by_the_checker() -> None:
    """An `execute` that does not match its type arguments needs a `type: ignore`, which strict mypy verifies."""
    assert (WrongInput.input_model, WrongOutput.output_model) == (Pair, Sum)
    assert WrongPlainOutput.output_model is Sum


async def test_execute_may_be_a_plain_function() -> None:
    """A plain `execute` has the output type itself, needs no `type: ignore`, and runs in a thread."""
    async with connect(container_of(PlainAdd(), PlainNothing())) as client:
        assert (await client.call("plain-add", {"a": 1, "b": 2})).structured == {"total": 3}
        assert (await client.call("plain-nothing", {"a": 1, "b": 2})).text == ""


def test_registries_hold_any_tool() -> None:
    """Registries accept tools of all types, and lookups are checked for None."""
    registry = ToolRegistry([Add(), IntPaged(), Words(), SchemaTool("raw", {}, dict)])
    assert_type(registry.try_get("add"), AnyTool | None)
    assert_type(registry.get_all(), tuple[ITool[Any, Any], ...])
    assert_type(registry.register(Blocks()), bool)
    assert_type(registry.register_range([Add()]), int)
    assert len(registry) == 5
