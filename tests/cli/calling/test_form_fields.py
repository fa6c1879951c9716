"""The fields of a form at a terminal."""

from typing import Any

import pytest

from axolotl_cli.calling.dialogue import _label, _value

TITLED = {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]}
SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["salt", "oil"]}, "minItems": 1, "maxItems": 2}


@pytest.mark.parametrize(
    ("schema", "label"),
    [
        ({"type": "string"}, "thing (text)"),
        ({"type": "string", "title": "A thing"}, "A thing (text)"),
        ({"type": "string", "format": "date"}, "thing (date)"),
        ({"type": "integer", "minimum": 1}, "thing (whole number)"),
        ({"type": "number", "default": 1}, "thing (number) [1]"),
        ({"type": "boolean", "default": False}, "thing (yes or no) [false]"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"]}, "thing (a = A, b)"),
        (TITLED, "thing (s = Small, l = Large)"),
        ({**SEVERAL, "default": ["oil"]}, 'thing (any of salt, oil) [["oil"]]'),
    ],
)
def test_label(schema: dict[str, Any], label: str) -> None:
    """The label shows the accepted values and the meaning of an empty line."""
    assert _label("thing", schema, is_required=True) == label


def test_optional_label() -> None:
    """An optional field is labeled as such."""
    assert _label("thing", {"type": "string"}, is_required=False) == "thing (text) [optional]"


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        ({"type": "string"}, "two words", "two words"),
        ({"type": "string", "format": "date"}, "2026-02-03", "2026-02-03"),
        ({"type": "integer"}, "-7", -7),
        ({"type": "integer"}, "1.5", "1.5"),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "number"}, "inf", "inf"),
        ({"type": "boolean"}, "yes", True),
        ({"type": "boolean"}, "false", False),
        ({"type": "boolean"}, "perhaps", "perhaps"),
        (TITLED, "L", "l"),
        (TITLED, "large", "l"),
        (TITLED, "medium", "medium"),
        (SEVERAL, "Oil, salt", ["oil", "salt"]),
    ],
)
def test_value(schema: dict[str, Any], line: str, value: Any) -> None:
    """A line becomes a value of the field's type; the server refuses what does not."""
    assert _value(schema, line) == value
