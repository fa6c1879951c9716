"""Form schemas of models."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import jsonschema_rs
import pytest
from pydantic import AnyUrl, BaseModel, EmailStr, Field, RootModel, SecretStr, create_model

from axolotl_core.errors import ConfigurationError
from axolotl_core.questions.question import Titles, form_of
from axolotl_core.schema import schema_of


class Colour(Enum):
    """What it is painted with."""

    RED = "red"
    BLUE = "blue"


class Size(StrEnum):
    SMALL = "s"
    LARGE = "l"


class Nested(BaseModel):
    inner: int


RED_OR_BLUE = [{"const": "red", "title": "Red"}, {"const": "blue", "title": "Deep blue"}]
NAMES = Titles("Red", "Deep blue")


def field_of(annotation: Any, default: Any = ...) -> Any:
    """Return the form field of a model with one field."""
    return form_of(create_model("Answer", x=(annotation, default))).schema["properties"]["x"]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param(str, {"type": "string"}, id="text"),
        pytest.param(int, {"type": "integer"}, id="integer"),
        pytest.param(float, {"type": "number"}, id="number"),
        pytest.param(bool, {"type": "boolean"}, id="boolean"),
        pytest.param(date, {"type": "string", "format": "date"}, id="date"),
        pytest.param(datetime, {"type": "string", "format": "date-time"}, id="date-time"),
        pytest.param(AnyUrl, {"type": "string", "format": "uri", "minLength": 1}, id="uri"),
        pytest.param(EmailStr, {"type": "string", "format": "email"}, id="email"),
        pytest.param(
            Annotated[str, Field(json_schema_extra={"format": "email"})],
            {"type": "string", "format": "email"},
            id="format-by-hand",
        ),
        pytest.param(UUID, {"type": "string"}, id="a-format-that-forms-do-not-know"),
        pytest.param(timedelta, {"type": "string"}, id="a-duration"),
        pytest.param(RootModel[int], {"type": "integer"}, id="a-simple-root"),
        pytest.param(Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, id="literal"),
        pytest.param(Literal["a"], {"type": "string", "enum": ["a"]}, id="one-choice"),
        pytest.param(Size, {"type": "string", "enum": ["s", "l"]}, id="string-enum"),
        pytest.param(
            Colour,
            {"type": "string", "enum": ["red", "blue"], "description": "What it is painted with."},
            id="enum-with-a-docstring",
        ),
        pytest.param(
            list[Literal["a", "b"]], {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, id="several"
        ),
        pytest.param(set[Size], {"type": "array", "items": {"type": "string", "enum": ["s", "l"]}}, id="a-set"),
        pytest.param(
            tuple[Size, ...], {"type": "array", "items": {"type": "string", "enum": ["s", "l"]}}, id="a-tuple"
        ),
    ],
)
def test_a_type_has_its_primitive(annotation: Any, expected: Any) -> None:
    """Each simple type becomes a primitive schema of the protocol."""
    assert field_of(annotation) == expected


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param(
            Annotated[Literal["red", "blue"], NAMES], {"type": "string", "oneOf": RED_OR_BLUE}, id="single-choice"
        ),
        pytest.param(
            Annotated[Literal["red", "blue"], Titles("Red", "Deep blue", legacy=True)],
            {"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Deep blue"]},
            id="legacy",
        ),
        pytest.param(
            Annotated[list[Literal["red", "blue"]], NAMES],
            {"type": "array", "items": {"anyOf": RED_OR_BLUE}},
            id="several",
        ),
        pytest.param(
            list[Annotated[Literal["red", "blue"], NAMES]],
            {"type": "array", "items": {"anyOf": RED_OR_BLUE}},
            id="several-from-inside",
        ),
        pytest.param(
            list[Annotated[Literal["red", "blue"], Titles("Red", "Deep blue", legacy=True)]],
            {"type": "array", "items": {"anyOf": RED_OR_BLUE}},
            id="several-have-no-legacy-form",
        ),
        pytest.param(
            Annotated[list[Colour], NAMES], {"type": "array", "items": {"anyOf": RED_OR_BLUE}}, id="several-of-an-enum"
        ),
        pytest.param(
            Annotated[Colour, NAMES],
            {"type": "string", "oneOf": RED_OR_BLUE, "description": "What it is painted with."},
            id="enum",
        ),
        pytest.param(
            Annotated[Literal["red", "blue"], NAMES] | None, {"type": "string", "oneOf": RED_OR_BLUE}, id="or-nothing"
        ),
        pytest.param(
            Annotated[Literal["red", "blue"] | None, NAMES], {"type": "string", "oneOf": RED_OR_BLUE}, id="around-both"
        ),
    ],
)
def test_choices_may_have_titles(annotation: Any, expected: Any) -> None:
    """Titles appear next to the choices, in single and multiple choices."""
    assert field_of(annotation) == expected


def test_titled_choices_are_a_schema_everywhere() -> None:
    """In the input schema of a tool, titles accept the choices and nothing else."""
    schema = schema_of(create_model("Input", colour=(Annotated[Colour, NAMES], ...)), "validation")
    assert jsonschema_rs.is_valid(schema, {"colour": "red"})
    assert not jsonschema_rs.is_valid(schema, {"colour": "green"})


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param(Annotated[str, Field(min_length=2, max_length=5)], {"minLength": 2, "maxLength": 5}, id="text"),
        pytest.param(Annotated[int, Field(ge=1, le=9)], {"minimum": 1, "maximum": 9}, id="integer"),
        pytest.param(Annotated[int, Field(gt=1, lt=9)], {"minimum": 2, "maximum": 8}, id="exclusive-integer"),
        pytest.param(Annotated[int, Field(gt=1, ge=5, lt=9, le=6)], {"minimum": 5, "maximum": 6}, id="the-tighter"),
        pytest.param(Annotated[int, Field(gt=5, ge=1, lt=7, le=9)], {"minimum": 6, "maximum": 6}, id="the-tighter-too"),
        pytest.param(Annotated[float, Field(ge=0.5, le=1)], {"minimum": 0.5, "maximum": 1}, id="number"),
        pytest.param(Annotated[float, Field(gt=0.5, lt=1)], {}, id="exclusive-number"),
        pytest.param(Annotated[str, Field(pattern="a+")], {}, id="pattern"),
        pytest.param(Annotated[int, Field(multiple_of=5)], {}, id="multiple"),
    ],
)
def test_constraints_are_shown_as_far_as_a_form_can(annotation: Any, expected: Any) -> None:
    """Inclusive limits are part of the form; other constraints apply when the answer is read."""
    shown = field_of(annotation)
    assert shown == {"type": shown["type"], **expected}


def test_several_choices_have_limits() -> None:
    """The number of choices can be limited from both sides."""
    shown = field_of(Annotated[list[Size], Field(min_length=1, max_length=2)])
    assert (shown["minItems"], shown["maxItems"]) == (1, 2)


@pytest.mark.parametrize(
    ("annotation", "default", "shown"),
    [
        pytest.param(str, "a", "a", id="text"),
        pytest.param(int, 0, 0, id="integer"),
        pytest.param(float, 1, 1, id="number"),
        pytest.param(bool, False, False, id="boolean"),
        pytest.param(date, date(2026, 1, 31), "2026-01-31", id="date"),
        pytest.param(Colour, Colour.BLUE, "blue", id="enum"),
        pytest.param(Annotated[Colour, NAMES], Colour.BLUE, "blue", id="titled-enum"),
        pytest.param(list[Colour], [Colour.BLUE], ["blue"], id="several"),
        pytest.param(int | None, 5, 5, id="a-default-where-nothing-would-do"),
    ],
)
def test_defaults_are_shown(annotation: Any, default: Any, shown: Any) -> None:
    """Defaults are part of the form; fields with a default are not required."""
    form = form_of(create_model("Answer", x=(annotation, default)))
    assert form.schema["properties"]["x"]["default"] == shown
    assert "required" not in form.schema


@pytest.mark.parametrize(
    "default",
    [
        pytest.param(None, id="nothing"),
        pytest.param(True, id="another-kind"),
        pytest.param(Field(default_factory=lambda: 5), id="factory"),
    ],
)
def test_defaults_that_a_form_cannot_show_are_left_out(default: Any) -> None:
    """A field with such a default is not required, and has no default in the form."""
    form = form_of(create_model("Answer", x=(int | None, default)))
    assert form.schema == {"type": "object", "properties": {"x": {"type": "integer"}}}


def test_labels_are_shown() -> None:
    """A field's title and description stand in the form, also where the field may be left out."""
    label = Field(None, title="Age", description="In years", alias="age_years", examples=[5])
    form = form_of(create_model("Answer", age=(int | None, label)))
    assert form.schema["properties"] == {"age_years": {"type": "integer", "title": "Age", "description": "In years"}}


def test_what_may_be_nothing_is_not_required() -> None:
    """Fields that may be None need no answer, whether the model has a default for them or not."""
    fields: dict[str, Any] = {
        "a": (int, ...),
        "b": (int | None, ...),
        "c": (Literal["x", None], ...),
        "d": (int | None, None),
    }
    form = form_of(create_model("Answer", **fields))
    assert form.schema["required"] == ["a"]
    assert form.schema["properties"]["c"] == {"type": "string", "enum": ["x"]}
    assert form.blank == {"b": None, "c": None}


def test_a_model_without_fields_is_a_confirmation() -> None:
    """Nothing is asked but whether the user agrees."""
    assert form_of(create_model("Answer")).schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("annotation", "advice"),
    [
        pytest.param(Nested, "put the fields into the model itself", id="model"),
        pytest.param(Nested | None, "put the fields into the model itself", id="model-or-nothing"),
        pytest.param(dict[str, int], "put the fields into the model itself", id="mapping"),
        pytest.param(int | str, "use one of str, int", id="union"),
        pytest.param(Decimal, "use one of str, int", id="decimal"),
        pytest.param(Any, "use str, int", id="anything"),
        pytest.param(None, "use str, int", id="nothing"),
        pytest.param(list[str], "use list[Literal[...]]", id="list-of-text"),
        pytest.param(list[Nested], "use list[Literal[...]]", id="list-of-models"),
        pytest.param(list[Size | None], "use list[Literal[...]]", id="list-with-nothing"),
        pytest.param(tuple[Size, Size], "use list[Literal[...]]", id="fixed-tuple"),
        pytest.param(Literal[1, 2], "use a Literal or Enum of strings", id="literal-of-numbers"),
        pytest.param(Literal["a", 2], "use a Literal or Enum of strings", id="mixed-literal"),
        pytest.param(SecretStr, "let the user open a URL", id="secret"),
    ],
)
def test_what_no_form_can_ask_is_refused(annotation: Any, advice: str) -> None:
    """The error contains the field and what to use instead."""
    with pytest.raises(ConfigurationError) as caught:
        field_of(annotation)
    assert str(caught.value).startswith("Answer.x: ")
    assert advice in str(caught.value)


@pytest.mark.parametrize("annotation", [Annotated[Colour, Titles("Red")], Annotated[str, Titles("Red", "Blue")]])
def test_titles_must_fit_the_choices(annotation: Any) -> None:
    """There must be one title per choice."""
    with pytest.raises(ConfigurationError, match=r"Answer: Titles\('Red'.* do not match the choices \["):
        field_of(annotation)


def test_a_root_is_no_form() -> None:
    """A model that is not made of fields is refused."""
    with pytest.raises(ConfigurationError, match="is not a form"):
        form_of(RootModel[int])


def test_a_form_is_compiled_once() -> None:
    """The same model has the same form."""
    assert form_of(Nested) is form_of(Nested)
