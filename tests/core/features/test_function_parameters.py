"""@tool: the schema and the validation of parameters agree for all models and fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from axolotl_core import InvalidArguments, tool
from tests.support.core.sample_tools import Pair, call, fits, read


class Node(BaseModel):
    """A tree."""

    value: int
    children: list[Node] = []


class Holder(BaseModel):
    """Holds a model of its own."""

    pair: Pair


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Careless(BaseModel):
    model_config = ConfigDict(extra="ignore")


@tool
async def plain(pair: Pair) -> str: ...  # type: ignore[empty-body]


@tool
async def nested(holder: Holder) -> str: ...  # type: ignore[empty-body]


@tool
async def tree(node: Node) -> str: ...  # type: ignore[empty-body]


@tool
async def listed(pairs: list[Pair]) -> str: ...  # type: ignore[empty-body]


@tool
async def opened(held: Open) -> str: ...  # type: ignore[empty-body]


@tool
async def careless(held: list[Careless]) -> str: ...  # type: ignore[empty-body]


PAIR = {"a": 1, "b": 2}
MORE = {"more": 1}


@pytest.mark.parametrize(
    ("made", "arguments", "accepted"),
    [
        pytest.param(plain, {"pair": PAIR}, True, id="model"),
        pytest.param(plain, {"pair": PAIR | MORE}, False, id="unknown-field"),
        pytest.param(plain, {"pair": PAIR} | MORE, False, id="unknown-argument"),
        pytest.param(nested, {"holder": {"pair": PAIR}}, True, id="nested"),
        pytest.param(nested, {"holder": {"pair": PAIR | MORE}}, False, id="unknown-field-nested"),
        pytest.param(tree, {"node": {"value": 1, "children": [{"value": 2}]}}, True, id="recursive"),
        pytest.param(tree, {"node": {"value": 1, "children": [{"value": 2} | MORE]}}, False, id="unknown-field-below"),
        pytest.param(listed, {"pairs": [PAIR]}, True, id="list"),
        pytest.param(listed, {"pairs": [PAIR | MORE]}, False, id="unknown-field-in-list"),
        pytest.param(opened, {"held": MORE}, True, id="allowed"),
        pytest.param(opened, {"held": {}} | MORE, False, id="allowed-inside-only"),
        pytest.param(careless, {"held": [MORE]}, True, id="ignored"),
    ],
)
def test_schema_and_parser_agree_about_unknown_fields(made: Any, arguments: dict[str, Any], accepted: bool) -> None:
    """Unknown fields are refused at any depth unless a model allows them, and the schema says the same."""
    assert fits(made.input_schema, **arguments) is accepted
    if accepted:
        read(made, **arguments)
    else:
        with pytest.raises(InvalidArguments, match="more: unknown argument"):
            read(made, **arguments)


async def test_models_of_the_same_name_are_not_confused() -> None:
    """Two parameters may be of different models that are called alike."""
    first, second = create_model("Item", a=(int, ...)), create_model("Item", b=(int, ...))

    async def probe(one: Any, two: Any, more: Any) -> int:
        return int(one.a + two.b + more[0].a)

    probe.__annotations__ = {"one": first, "two": second, "more": list[first], "return": int}  # type: ignore[valid-type]
    made = tool(probe)
    assert fits(made.input_schema, one={"a": 1}, two={"b": 2}, more=[{"a": 3}])
    assert not fits(made.input_schema, one={"b": 1}, two={"b": 2}, more=[])
    assert await call(made, one={"a": 1}, two={"b": 2}, more=[{"a": 3}]) == 6


async def by_annotation(sender: Annotated[str, Field(alias="from", description="Who")]) -> str:
    return sender


async def by_default(sender: str = Field(alias="from", description="Who")) -> str:
    return sender


async def by_validation_alias(sender: Annotated[str, Field(validation_alias="from", description="Who")]) -> str:
    return sender


@pytest.mark.parametrize("function", [by_annotation, by_default, by_validation_alias])
async def test_an_alias_is_the_public_name(function: Callable[..., Any]) -> None:
    """Callers use the alias; the function uses its own name."""
    made = tool(function)
    assert made.input_schema["properties"] == {"from": {"type": "string", "description": "Who"}}
    assert made.input_schema["required"] == ["from"]
    assert await call(made, **{"from": "x"}) == "x"
    with pytest.raises(InvalidArguments, match="from: required, but missing; sender: unknown argument"):
        read(made, sender="x")


async def in_the_field(size: Annotated[int, Field(default=5)]) -> int:
    return size


async def in_the_signature(size: Annotated[int, Field(default=7, ge=1)] = 5) -> int:
    return size


async def as_the_field(size: int = Field(5, ge=1)) -> int:
    return size


@pytest.mark.parametrize("function", [in_the_field, in_the_signature, as_the_field])
async def test_the_published_default_is_the_one_that_holds(function: Callable[..., Any]) -> None:
    """A default can be in the field or in the signature, which takes precedence."""
    made = tool(function)
    assert made.input_schema["properties"]["size"]["default"] == 5
    assert "required" not in made.input_schema
    assert await call(made) == 5
    assert await call(made, size=9) == 9


async def test_a_default_factory_is_asked_for_each_call() -> None:
    """The value of a default factory belongs to one call, and is not published."""

    @tool
    async def collect(into: Annotated[list[int], Field(default_factory=list)]) -> list[int]:
        into.append(1)
        return into

    assert [await call(collect), await call(collect)] == [[1], [1]]
    assert "default" not in collect.input_schema["properties"]["into"]


async def test_validators_of_an_annotation_run_with_its_field() -> None:
    """A custom validator applies in addition to the constraints of a field."""

    def even(number: int) -> int:
        if number % 2:
            raise ValueError("give an even number")
        return number

    async def probe(number: Any) -> int:
        return int(number)

    probe.__annotations__["number"] = Annotated[int, Field(ge=2), AfterValidator(even)]
    made = tool(probe)
    assert await call(made, number=4) == 4
    with pytest.raises(InvalidArguments, match="number: Value error, give an even number"):
        read(made, number=3)
    with pytest.raises(InvalidArguments, match="number: Input should be greater than or equal to 2"):
        read(made, number=0)


async def test_a_null_argument_differs_from_an_absent_one() -> None:
    """A null argument is not replaced by the default; an absent one is."""

    @tool
    async def probe(number: int | None = 5) -> str:
        return str(number)

    assert await call(probe, number=None) == "None"
    assert await call(probe) == "5"
