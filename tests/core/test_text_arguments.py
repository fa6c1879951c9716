"""Arguments that arrive as strings: supported types and resolved schemas."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AnyUrl, BaseModel, Field, RootModel, TypeAdapter, create_model
from typing_extensions import TypeAliasType

from axolotl_core import ConfigurationError
from axolotl_core.arguments import check_textual, property_of
from axolotl_core.questions.question import Titles
from axolotl_core.schema import JsonSchema, schema_of


class Colour(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Size(StrEnum):
    SMALL = "s"


class Level(IntEnum):
    LOW = 1


class Number(Enum):
    ONE = 1


class Point(BaseModel):
    x: int


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


Shade = TypeAliasType("Shade", Colour)
Endless = TypeAliasType("Endless", "list[Endless] | str")


def schema_with(annotation: Any, **said: Any) -> JsonSchema:
    """Describe a model with one field."""
    return schema_of(create_model("Probe", value=(annotation, Field(**said))), "validation")


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        pytest.param(str, "x", id="str"),
        pytest.param(int, "5", id="int"),
        pytest.param(float, "1.5", id="float"),
        pytest.param(bool, "true", id="bool"),
        pytest.param(date, "2024-01-01", id="date"),
        pytest.param(datetime, "2024-01-01T00:00:00", id="datetime"),
        pytest.param(timedelta, "P1D", id="timedelta"),
        pytest.param(Decimal, "1.5", id="decimal"),
        pytest.param(UUID, "00000000-0000-0000-0000-000000000000", id="uuid"),
        pytest.param(AnyUrl, "https://example.com", id="url"),
        pytest.param(PurePosixPath, "/a", id="path"),
        pytest.param(bytes, "x", id="bytes"),
        pytest.param(Any, "x", id="any"),
        pytest.param(Literal["a", "b"], "a", id="literal"),
        pytest.param(Literal["a", None], "a", id="literal-with-none"),
        pytest.param(Colour, "red", id="enum"),
        pytest.param(Size, "s", id="str-enum"),
        pytest.param(Shade, "red", id="alias"),
        pytest.param(Colour | None, "red", id="optional-enum"),
        pytest.param(Shade | None, "red", id="optional-alias"),
        pytest.param(int | Literal["all"], "all", id="union"),
        pytest.param(Annotated[Literal["s", "m"], Titles("Small", "Medium")], "m", id="titled"),
        pytest.param(Annotated[str, Field(json_schema_extra={"x": [1]})], "x", id="unhashable"),
    ],
)
def test_supported_types_are_accepted(annotation: Any, text: str) -> None:
    """The check agrees with the validator that will read the text."""
    check_textual("Probe", schema_with(annotation))
    TypeAdapter(annotation).validate_json(f'"{text}"', strict=False)


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(None, id="none"),
        pytest.param(list[str], id="list"),
        pytest.param(dict[str, str], id="dict"),
        pytest.param(Point, id="model"),
        pytest.param(Point | None, id="optional-model"),
        pytest.param(int | list[int], id="union"),
        pytest.param(Literal[1, 2], id="literal-of-numbers"),
        pytest.param(Literal["a", 1], id="literal-of-both"),
        pytest.param(Literal[True], id="literal-of-a-bool"),
        pytest.param(Number, id="enum-of-numbers"),
        pytest.param(Level, id="int-enum"),
        pytest.param(Annotated[Cat | Dog, Field(discriminator="kind")], id="discriminated"),
        pytest.param(Endless, id="endless"),
    ],
)
def test_unsupported_types_are_refused(annotation: Any) -> None:
    """The error contains the owner, the argument and what to use."""
    with pytest.raises(ConfigurationError, match="Probe: value cannot be parsed from a string; use str, int"):
        check_textual("Probe", schema_with(annotation))


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(list[str], id="list"),
        pytest.param(list[int] | None, id="optional"),
        pytest.param(tuple[Colour, ...], id="tuple"),
        pytest.param(set[Literal["a"]], id="set"),
        pytest.param(list[int | None], id="items-that-may-be-null"),
        pytest.param(list[Any], id="anything"),
        pytest.param(Any, id="any"),
    ],
)
def test_a_list_of_texts_needs_a_list(annotation: Any) -> None:
    """Arguments in `lists` are lists of supported types."""
    check_textual("Probe", schema_with(annotation), lists={"value"})


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(str, id="str"),
        pytest.param(str | list[str], id="either"),
        pytest.param(list[list[str]], id="nested"),
        pytest.param(list[Point], id="models"),
        pytest.param(list[Number], id="numbers"),
        pytest.param(None, id="none"),
    ],
)
def test_unsupported_lists_are_refused(annotation: Any) -> None:
    """Other types are refused for lists."""
    with pytest.raises(ConfigurationError, match="Probe: value cannot be parsed from strings; use a list of str, int"):
        check_textual("Probe", schema_with(annotation), lists={"value"})


@pytest.mark.parametrize("root", [RootModel[str], RootModel[list[str]]])
def test_arguments_must_have_names(root: Any) -> None:
    """A model without named fields is refused."""
    with pytest.raises(
        ConfigurationError, match="Probe: arguments need names; use a model with one field per argument"
    ):
        check_textual("Probe", schema_of(root, "validation"))


def test_references_are_followed_to_their_end() -> None:
    """The argument's own schema takes precedence over its type, whose title is dropped."""
    assert property_of(schema_with(Colour, description="Which"), "value") == {
        "description": "Which",
        "enum": ["red", "blue"],
        "type": "string",
    }
    assert property_of(schema_with(Shade), "value")["description"] == "A colour."
    optional = property_of(schema_with(Colour | None), "value")
    assert optional["anyOf"][0]["enum"] == ["red", "blue"]
    assert property_of(schema_with(list[Colour]), "value")["items"]["enum"] == ["red", "blue"]


def test_a_title_of_a_type_is_dropped_and_one_of_an_argument_kept() -> None:
    """Only an explicit title is the title of an argument."""
    schema: JsonSchema = {
        "properties": {"a": {"$ref": "#/$defs/T"}, "b": {"$ref": "#/$defs/T", "title": "Mine"}},
        "$defs": {"T": {"title": "T", "type": "string"}},
    }
    assert property_of(schema, "a") == {"type": "string"}
    assert property_of(schema, "b") == {"type": "string", "title": "Mine"}


def test_an_argument_that_is_not_there_has_an_empty_schema() -> None:
    """The schema of an unknown argument is empty."""
    assert property_of(schema_with(int), "other") == {}
    assert property_of({}, "other") == {}
