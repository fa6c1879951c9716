"""The schemas a tool publishes: derived from its models, closed, quiet, with an object at the root."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel
from typing_extensions import TypedDict

from axolotl_core import ConfigurationError, Context, ITool, NoArguments
from axolotl_core.features.spec import Limits, ToolSpec
from axolotl_core.registry import AnyTool
from axolotl_core.schema import JsonSchema, wrapped
from tests.support.core.sample_tools import Add, fits

ItemT = TypeVar("ItemT")
LIMITS = Limits(timeout_seconds=1.0, max_concurrency=None, execution="loop", coerce_arguments=False)


class Colour(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Place(TypedDict):
    """A place."""

    city: str


@dataclass
class Span:
    """From one day to another."""

    start: date
    end: date


class Box(BaseModel, Generic[ItemT]):
    """Holds one thing."""

    item: ItemT


class Order(BaseModel):
    """An order."""

    count: Annotated[int, Field(ge=1, le=9, description="How many")]
    code: str = Field(pattern="^[A-Z]+$", max_length=3, examples=["ABC"])
    colour: Colour = Colour.RED
    place: Place
    span: Span
    box: Box[int]
    kind: Literal["new", "old"] = "new"
    note: str | None = None
    title: str = Field("none", title="Heading")


class Node(BaseModel):
    """A tree."""

    value: int
    children: list[Node] = []


class Left(BaseModel):
    """Half of a cycle."""

    right: Right | None = None


class Right(BaseModel):
    """The other half."""

    left: Left | None = None


Left.model_rebuild()


def tool_of(taken: Any, given: Any = None) -> AnyTool:
    """Make a tool of these models."""

    class Made(ITool[taken, given]):
        name = "made"

        async def execute(self, arguments: Any, context: Context) -> Any: ...

    return Made()


def titles_in(schema: Any) -> list[str]:
    """Collect every `title` keyword, properties of that name aside."""
    if isinstance(schema, list):
        return [title for item in schema for title in titles_in(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema["title"]] if isinstance(schema.get("title"), str) else []
    return own + [title for value in schema.values() for title in titles_in(value)]


def test_descriptions_and_constraints_are_kept() -> None:
    """The attributes of a field are part of the schema."""
    properties = tool_of(Order).input_schema["properties"]
    assert properties["count"] == {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many"}
    assert properties["code"] == {"type": "string", "pattern": "^[A-Z]+$", "maxLength": 3, "examples": ["ABC"]}
    assert properties["kind"] == {"type": "string", "enum": ["new", "old"], "default": "new"}
    assert properties["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert tool_of(Order).input_schema["required"] == ["count", "code", "place", "span", "box"]


def test_class_docstrings_become_descriptions() -> None:
    """A docstring of a model describes it, nested ones too."""
    schema = tool_of(Order).input_schema
    described = {name: definition.get("description") for name, definition in schema["$defs"].items()}
    assert schema["description"] == "An order."
    assert described["Colour"] == "A colour."
    assert described["Place"] == "A place."


@pytest.mark.parametrize("direction", [pytest.param("input", id="input"), pytest.param("output", id="output")])
def test_titles_that_repeat_names_are_left_out(direction: str) -> None:
    """A schema has only explicit titles, not those of models, enums, dataclasses and typed dicts."""
    tool = tool_of(Order, Order)
    assert titles_in(tool.input_schema if direction == "input" else tool.output_schema) == ["Heading"]


def test_an_explicit_title_of_a_model_is_kept() -> None:
    """A title written in the configuration of a model stays."""

    class Titled(BaseModel):
        model_config = ConfigDict(title="An address")

    assert tool_of(Titled).input_schema["title"] == "An address"


def test_every_object_is_closed() -> None:
    """Unknown fields are refused at the root and in every nested object."""
    schema = tool_of(Order).input_schema
    closed = {name for name, definition in schema["$defs"].items() if definition.get("additionalProperties") is False}
    assert schema["additionalProperties"] is False
    assert closed == {"Place", "Span", "Box_int_"}


def test_ignored_fields_are_in_the_input_schema_only() -> None:
    """A model that ignores unknown fields says so in the input schema only."""

    class Careless(BaseModel):
        model_config = ConfigDict(extra="ignore")

    tool = tool_of(Careless, Careless)
    assert tool.input_schema["additionalProperties"] is True
    assert "additionalProperties" not in (tool.output_schema or {})


def test_no_arguments_is_an_empty_closed_object() -> None:
    """A tool without arguments publishes an object that takes nothing."""
    schema = tool_of(NoArguments).input_schema
    assert fits(schema)
    assert not fits(schema, anything=1)


def test_a_root_model_of_a_dict_keeps_its_values() -> None:
    """An object with free keys is not closed."""
    schema = tool_of(RootModel[dict[str, int]]).input_schema
    assert fits(schema, anything=1)
    assert not fits(schema, anything="one")


@pytest.mark.parametrize("model", [pytest.param(Node, id="itself"), pytest.param(Left, id="through-another")])
def test_recursive_models_have_an_object_at_the_root(model: type[BaseModel]) -> None:
    """The root of both schemas has `"type": "object"` instead of a bare reference."""
    tool = tool_of(model, model)
    for schema in (tool.input_schema, tool.output_schema):
        assert schema is not None
        assert schema["type"] == "object"
        assert "$ref" not in schema
        assert set(schema["properties"]) == set(model.model_fields)


def test_a_recursive_schema_agrees_with_its_model() -> None:
    """The closed schema of a recursive model still lets its own fields pass, at any depth."""
    schema = tool_of(Node).input_schema
    assert fits(schema, value=1, children=[{"value": 2, "children": [{"value": 3}]}])
    assert not fits(schema, value=1, children=[{"value": "two"}])
    assert not fits(schema, value=1, more=1)
    assert not fits(schema, value=1, children=[{"value": 2, "more": 1}])


def test_deriving_a_schema_does_not_change_it() -> None:
    """Changing a returned schema does not affect the tool."""
    tool = tool_of(Node)
    first = tool.input_schema
    first["$defs"]["Node"]["properties"].clear()
    first["properties"].clear()
    assert set(tool.input_schema["properties"]) == {"value", "children"}
    assert set(tool.input_schema["$defs"]["Node"]["properties"]) == {"value", "children"}


def test_aliases_are_the_public_names() -> None:
    """A schema shows the alias of a field: to be read in the input, to be written in the output."""

    class Mail(BaseModel):
        sender: str = Field(alias="from")
        to: str = Field(validation_alias="recipient", serialization_alias="sentTo")

    tool = tool_of(Mail, Mail)
    assert tool.output_schema is not None
    assert list(tool.input_schema["properties"]) == ["from", "recipient"]
    assert list(tool.output_schema["properties"]) == ["from", "sentTo"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param(str, None, id="text"),
        pytest.param(int, {"type": "integer"}, id="number"),
        pytest.param(list[int], {"type": "array", "items": {"type": "integer"}}, id="list"),
        pytest.param(dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, id="dict"),
    ],
)
def test_the_output_schema_is_derived_from_any_json_type(given: Any, expected: JsonSchema | None) -> None:
    """Structured outputs have a schema, text and nothing have none."""
    assert tool_of(NoArguments, given).output_schema == expected


def test_a_wrapped_schema_keeps_its_references() -> None:
    """A schema put under `result` still finds its definitions."""
    schema = wrapped(tool_of(NoArguments, list[Node]).output_schema or {})
    assert fits(schema, result=[{"value": 1, "children": [{"value": 2}]}])
    assert not fits(schema, result=[{"value": "one"}])
    assert not fits(schema)


class ByProperty(Add):
    """Publishes a schema written by hand."""

    @property
    def input_schema(self) -> JsonSchema:
        return {"type": "object", "properties": {"a": {"type": "integer"}}}


class ByAttribute(Add):
    """Publishes a schema written by hand, in the short form."""

    input_schema: ClassVar[JsonSchema] = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize("kind", [pytest.param(ByProperty, id="property"), pytest.param(ByAttribute, id="attribute")])
def test_a_schema_can_be_written_by_hand(kind: type[AnyTool]) -> None:
    """A hand-written schema is published unchanged."""
    spec = ToolSpec.of(kind(), LIMITS)
    assert spec.input_schema == {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    "model",
    [pytest.param(RootModel[list[int]], id="array"), pytest.param(RootModel[Order | Node], id="union")],
)
def test_the_root_of_an_input_schema_is_an_object(model: type[BaseModel]) -> None:
    """The root of an input schema must be an object."""
    with pytest.raises(ConfigurationError, match='\'made\': the root of an input schema must have "type": "object"'):
        ToolSpec.of(tool_of(model), LIMITS)


def test_a_spec_has_the_attributes_of_the_tool() -> None:
    """A spec has the tool's name, schemas and limits."""
    tool = Add()
    spec = ToolSpec.of(tool, LIMITS)
    assert (spec.tool, spec.name, spec.limits) == (tool, "add", LIMITS)
    assert (spec.input_schema, spec.output_schema) == (tool.input_schema, tool.output_schema)
    assert spec.header_parameters == ()
