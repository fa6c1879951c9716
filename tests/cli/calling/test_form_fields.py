"""The fields of a form at a terminal."""

from typing import Any

import pytest

from axolotl_cli.calling.dialogue import BLANK, FormField, fields_of

TITLED = {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]}
SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["salt", "oil"]}, "minItems": 1, "maxItems": 2}


def field(schema: dict[str, Any], *, required: bool = True) -> FormField:
    return FormField("thing", schema, required)


@pytest.mark.parametrize(
    ("schema", "label"),
    [
        ({"type": "string"}, "thing (text)"),
        ({"type": "string", "title": "A thing"}, "A thing (text)"),
        ({"type": "string", "minLength": 1, "maxLength": 9}, "thing (text, 1 to 9 characters)"),
        ({"type": "string", "format": "date"}, "thing (date, YYYY-MM-DD)"),
        ({"type": "string", "format": "email"}, "thing (email)"),
        ({"type": "integer", "minimum": 1}, "thing (whole number, at least 1)"),
        ({"type": "number", "maximum": 2.5, "default": 1}, "thing (number, at most 2.5) [1]"),
        ({"type": "boolean", "default": False}, "thing (yes or no) [no]"),
        ({"type": "string", "enum": ["a", "b"], "default": "b"}, "thing (a, b) [b]"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"]}, "thing (a = A, b)"),
        (TITLED, "thing (s = Small, l = Large)"),
        ({**SEVERAL, "default": ["oil"]}, "thing (any of salt, oil; separated by commas) [oil]"),
    ],
)
def test_label(schema: dict[str, Any], label: str) -> None:
    """The label shows the accepted values and the meaning of an empty line."""
    assert field(schema).label == label


def test_optional_label() -> None:
    """An optional field is labeled as such."""
    assert field({"type": "string"}, required=False).label == "thing (text) [optional]"


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        ({"type": "string"}, " two words ", "two words"),
        ({"type": "string", "format": "date"}, "2026-02-03", "2026-02-03"),
        ({"type": "integer"}, "-7", -7),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "boolean"}, "Y", True),
        ({"type": "boolean"}, "false", False),
        (TITLED, "L", "l"),
        (TITLED, "large", "l"),
        (SEVERAL, "Oil, salt", ["oil", "salt"]),
        ({"type": "integer", "default": 3}, "", 3),
        ({"type": "boolean", "default": False}, " ", False),
    ],
)
def test_read(schema: dict[str, Any], line: str, value: Any) -> None:
    """A line becomes a value of the field's type, an empty line the default."""
    assert field(schema).read(line) == value


def test_blank() -> None:
    """An optional field that is left empty has no value."""
    assert field({"type": "integer"}, required=False).read("\n") is BLANK


@pytest.mark.parametrize(
    ("schema", "line", "problem"),
    [
        ({"type": "string"}, "", "a value is required"),
        ({"type": "string", "minLength": 3}, "ab", "too short: at least 3"),
        ({"type": "string", "maxLength": 1}, "ab", "too long: at most 1"),
        ({"type": "string", "format": "date"}, "2026-02-30", "'2026-02-30' is not a date of the form YYYY-MM-DD"),
        ({"type": "integer"}, "1.5", "'1.5' is not a whole number"),
        ({"type": "integer", "minimum": 2}, "1", "too small: at least 2"),
        ({"type": "number", "maximum": 2}, "3", "too large: at most 2"),
        ({"type": "number"}, "many", "'many' is not a number"),
        ({"type": "number"}, "inf", "'inf' is not a number"),
        ({"type": "boolean"}, "perhaps", "'perhaps' is neither yes nor no"),
        (TITLED, "medium", "'medium' is not one of s, l"),
        (SEVERAL, "salt, sugar", "'sugar' is not one of salt, oil"),
        (SEVERAL, "salt, oil, salt", "too many: at most 2"),
    ],
)
def test_unreadable(schema: dict[str, Any], line: str, problem: str) -> None:
    """The error for an invalid value says what to enter."""
    with pytest.raises(ValueError, match=r"^.+$") as caught:
        field(schema).read(line)
    assert str(caught.value) == problem


def test_fields() -> None:
    """A form has its fields in order, and knows which are required."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": TITLED}, "required": ["b"]}
    assert [(one.name, one.required) for one in fields_of(schema)] == [("a", False), ("b", True)]
