"""@tool: a function's signature becomes the tool, and the function stays a function."""

import functools
import inspect
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import Field

from axolotl_core import ConfigurationError, Context, InvalidArguments, ToolAnnotations, tool
from axolotl_core.features import function_feature
from axolotl_core.features.attributes import relative_path
from axolotl_core.protocol.identity import Icon
from tests.support.core.sample_tools import Pair, Sum, call, read


class Colour(Enum):
    RED = "red"


@tool
async def add(a: int, b: int = 2) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@tool
def join(left: str, right: str) -> str:
    """Join two texts."""
    return left + right


def test_the_signature_becomes_the_tool() -> None:
    """Name, description, models and defaults are read from the function."""
    assert (add.name, add.description, add.output_model) == ("add", "Add two numbers.", Sum)
    assert add.input_schema == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
        "additionalProperties": False,
    }


def test_the_function_can_still_be_called() -> None:
    """Calling the tool calls the function, with the function's types."""
    assert join("a", right="b") == "ab"


async def test_an_async_function_can_still_be_awaited() -> None:
    """Calling an `async def` tool returns its coroutine."""
    assert await add(1, b=3) == Sum(total=4)


def test_an_async_function_runs_on_the_loop() -> None:
    """An `async def` stays on the event loop and may wait there."""
    assert (add.execution, add.suspends) == ("loop", True)


def test_a_plain_function_runs_in_a_thread() -> None:
    """A plain `def` runs in a thread, and its coroutine never awaits."""
    assert (join.execution, join.suspends) == ("thread", False)


def test_a_plain_function_may_ask_for_the_loop() -> None:
    """`execution="loop"` keeps a plain `def` on the loop."""
    assert tool(execution="loop")(join.function).execution == "loop"


async def test_arguments_reach_the_function_by_name() -> None:
    """Each argument arrives at the parameter of its name, defaults where none was given."""
    assert await call(add, a=1) == Sum(total=3)
    assert await call(add, b=5, a=1) == Sum(total=6)
    assert await call(join, right="b", left="a") == "ab"


async def test_nested_models_stay_models() -> None:
    """A parameter that is a model receives the model, not a dict."""

    @tool
    async def total(pair: Pair, more: list[Pair]) -> int:
        return sum(each.a + each.b for each in (pair, *more))

    assert await call(total, pair={"a": 1, "b": 2}, more=[{"a": 3, "b": 4}]) == 10


@pytest.mark.parametrize(
    ("annotation", "schema", "good", "bad"),
    [
        pytest.param(Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, "x", id="optional"),  # noqa: UP045
        pytest.param(int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1, "x", id="or-none"),
        pytest.param(Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "a", "c", id="literal"),
        pytest.param(Colour, {"type": "string", "enum": ["red"]}, "red", "blue", id="enum"),
        pytest.param(
            Annotated[int, Field(ge=1, description="Count")],
            {"type": "integer", "minimum": 1, "description": "Count"},
            1,
            0,
            id="annotated",
        ),
        pytest.param(list[int], {"type": "array", "items": {"type": "integer"}}, [1], ["x"], id="list"),
    ],
)
def test_annotations_become_schemas(annotation: Any, schema: dict[str, Any], good: Any, bad: Any) -> None:
    """An annotation determines the schema and the validation."""

    def probe(value: Any) -> str:
        raise NotImplementedError

    probe.__annotations__["value"] = annotation
    made = tool(probe)
    assert made.input_schema["properties"]["value"] == schema
    read(made, value=good)
    with pytest.raises(InvalidArguments, match="value"):
        read(made, value=bad)


async def test_a_mutable_default_is_not_shared_between_calls() -> None:
    """A default list belongs to one call."""

    @tool
    async def collect(item: int, into: list[int] = []) -> list[int]:  # noqa: B006
        into.append(item)
        return into

    assert [await call(collect, item=1), await call(collect, item=2)] == [[1], [2]]


async def test_a_default_may_be_a_field() -> None:
    """`Field(…)` as a default sets the default and the constraints."""

    @tool
    async def page(size: int = Field(10, le=100, description="Page size")) -> int:
        return size

    schema = page.input_schema["properties"]["size"]
    assert schema == {"type": "integer", "default": 10, "maximum": 100, "description": "Page size"}
    assert await call(page) == 10


@pytest.mark.parametrize(
    "name",
    [
        "schema",
        "json",
        "copy",
        "dict",
        "validate",
        "model_dump",
        "model_config",
        "model_fields",
        "_private",
        "__dunder",
    ],
)
async def test_names_that_pydantic_keeps_to_itself_are_ordinary_parameters(name: str) -> None:
    """A parameter may be called like a member of a model: callers see that name, and the function receives it."""
    namespace: dict[str, Any] = {}
    exec(f"async def probe(first: int, {name}: str = 'x') -> str: return {name}", namespace)
    made = tool(namespace["probe"])
    assert list(made.input_schema["properties"]) == ["first", name]
    assert await call(made, first=1, **{name: "given"}) == "given"
    assert await call(made, first=1) == "x"
    with pytest.raises(InvalidArguments, match=f"it takes first, {name}$"):
        read(made, first=1, other=1)


async def named_context(a: int, anything: Context) -> str:
    return f"{a} {anything.request_id}"


async def leading_context(ctx: Context, a: int) -> str:
    return f"{a} {ctx.request_id}"


async def keyword_context(a: int, *, context: Context) -> str:
    return f"{a} {context.request_id}"


async def optional_context(a: int, context: Context | None = None) -> str:
    return f"{a} {context.request_id if context else 'none'}"


async def annotated_context(a: int, context: Annotated[Context, "mine"]) -> str:
    return f"{a} {context.request_id}"


async def two_contexts(one: Context, a: int, two: Context) -> str:
    return f"{a} {two.request_id if one is two else 'others'}"


async def quoted_context(a: int, context: "Context") -> str:
    return f"{a} {context.request_id}"


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(named_context, id="any-name"),
        pytest.param(leading_context, id="first"),
        pytest.param(keyword_context, id="keyword-only"),
        pytest.param(optional_context, id="optional"),
        pytest.param(annotated_context, id="annotated"),
        pytest.param(two_contexts, id="twice"),
        pytest.param(quoted_context, id="quoted"),
    ],
)
async def test_the_context_is_injected_and_is_not_an_argument(function: Callable[..., Any]) -> None:
    """A parameter annotated with Context receives the call's context, and callers do not see it."""
    made = tool(function)
    assert list(made.input_schema["properties"]) == ["a"]
    assert await call(made, Context(request_id="r-7"), a=1) == "1 r-7"


async def test_callers_cannot_pass_the_context() -> None:
    """An argument of the context's name is unknown like any other."""
    with pytest.raises(InvalidArguments, match="context: unknown argument"):
        await call(tool(keyword_context), a=1, context={})


def variadic(*values: int) -> None: ...
def keywords(**values: int) -> None: ...
def positional(value: int, /) -> None: ...
def unannotated(value) -> None: ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        pytest.param(variadic, "variadic(values){}: each parameter must be passable by name", id="variadic"),
        pytest.param(keywords, "keywords(values){}: each parameter must be passable by name", id="keywords"),
        pytest.param(positional, "positional(value){}: each parameter must be passable by name", id="positional"),
        pytest.param(unannotated, "unannotated(value){}: annotate the parameter", id="unannotated"),
    ],
)
def test_a_signature_that_cannot_be_filled_by_name_is_refused(function: Callable[..., Any], text: str) -> None:
    """Variadic, positional-only and unannotated parameters are refused by name, with the line of the decorator."""
    with pytest.raises(ConfigurationError) as refused:
        tool(function)
    own = Path(__file__)
    line = own.read_text(encoding="utf-8").splitlines().index("        tool(function)") + 1
    assert text.format(f" ({relative_path(str(own))}:{line})") in str(refused.value)


def test_a_function_without_return_annotation_has_no_output_schema() -> None:
    """Without a return annotation, there is no output schema."""

    def probe(a: int):  # type: ignore[no-untyped-def]
        return a

    assert tool(probe).output_schema is None


def test_options_set_the_attributes_of_the_tool() -> None:
    """Each option stands for the attribute of the same name."""
    options: dict[str, Any] = {
        "name": "sum",
        "description": "Sums",
        "title": "Sum",
        "annotations": ToolAnnotations(read_only=True),
        "icons": (Icon("https://example.com/i.png"),),
        "meta": {"a": 1},
        "tags": frozenset({"math"}),
        "timeout_seconds": 1.5,
        "max_concurrency": 3,
        "execution": "thread",
        "coerce_arguments": True,
    }
    made = tool(**options)(add.function)
    assert {name: getattr(made, name) for name in options} == options


def test_an_unknown_option_is_refused() -> None:
    """An unknown option is refused."""
    options: dict[str, Any] = {"timout_seconds": 1.0}
    with pytest.raises(ConfigurationError, match=r"@tool \(.*test_function_tool.py:\d+\) has no option timout_seconds"):
        tool(**options)


def test_a_wrapped_function_keeps_its_signature() -> None:
    """A decorator that uses `functools.wraps` does not hide the parameters."""

    def passing(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return inner

    assert list(tool(passing(join.function)).input_schema["properties"]) == ["left", "right"]


def test_two_tools_of_one_function_are_independent() -> None:
    """Options of one tool do not reach another tool of the same function."""
    first, second = tool(name="first")(join.function), tool(join.function)
    assert (first.name, second.name) == ("first", "join")


def test_a_function_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of functions become tools quickly: a signature is read once, and places only for mistakes."""
    signatures: list[object] = []
    signature = inspect.signature

    def read_signature(function: Callable[..., Any]) -> inspect.Signature:
        signatures.append(function)
        return signature(function)

    def subtract(a: int, b: int = 1) -> int:
        return a - b

    monkeypatch.setattr(inspect, "signature", read_signature)
    monkeypatch.setattr(function_feature, "caller_place", lambda: pytest.fail("nothing is wrong"))
    assert tool(subtract).name == "subtract"
    assert signatures == [subtract]
