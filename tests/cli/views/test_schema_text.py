"""Short descriptions of schemas."""

from typing import Any

import pytest

from axolotl_cli.views.schemas import outline


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"enum": ["a", 1]}, '"a" | 1'),
        ({"const": None}, "null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"type": "array", "items": {"$ref": "#/$defs/Part"}}, "array of object"),
        ({"type": ["integer", "null"]}, "integer | null"),
        ({}, "anything"),
        ({"type": "string", "default": "x"}, 'string = "x"'),
    ],
)
def test_types(schema: dict[str, Any], words: str) -> None:
    """The type of a property is described in a few words."""
    whole = {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "$defs": {"Part": {"type": "object"}},
    }
    assert [kind for _, kind, _ in outline(whole)] == [words]


def test_cycles() -> None:
    """A type that contains itself, and one with very many alternatives, are cut."""
    cycle = {"type": "array", "items": {"$ref": "#/$defs/tree"}}
    tree = {f"level{n}": {"anyOf": [{"$ref": f"#/$defs/level{n + 1}"}, {"const": n}] * 30} for n in range(30)}
    properties = {"tree": {"$ref": "#/$defs/tree"}, "wide": {"$ref": "#/$defs/level0"}}
    whole = {"type": "object", "properties": properties, "$defs": {"tree": cycle, **tree}}
    shown = {name: kind for name, kind, _ in outline(whole)}
    assert shown["tree"] == "array of array of array of array of array of …, optional"
    assert shown["wide"].endswith("| …, optional")


def test_optional() -> None:
    """An optional property is marked."""
    assert list(outline({"type": "object", "properties": {"value": {"type": "string", "description": "What."}}})) == [
        ("value", "string, optional", "What.")
    ]


def test_no_object() -> None:
    """A schema that is not an object has one line without a name."""
    assert list(outline({"type": "array", "items": {"type": "integer"}})) == [("", "array of integer", "")]
