"""Arguments that arrive as text: those of prompts and the variables of resource templates."""

from collections.abc import Mapping
from typing import Any, Final

from axolotl_core.errors import ConfigurationError
from axolotl_core.schema import JsonSchema

__all__ = ["check_textual", "property_of"]

_TEXTUAL: Final = frozenset({"string", "integer", "number", "boolean", "null"})


def check_textual(owner: str, schema: JsonSchema, *, lists: bool = False) -> None:
    """Make sure that each argument can be read from text, or, where `lists` says so, from a list of texts.

    Raises:
        ConfigurationError: with the name of one that cannot.
    """
    for name in schema.get("properties", {}):
        described = property_of(schema, name)
        if lists and described.get("type") == "array":
            described = described.get("items", {})
        if not _is_textual(described, schema):
            raise ConfigurationError(
                f"{owner}: {name} arrives as text and cannot be made of it; use str, int, float, bool, a date, "
                "a Literal of texts or an Enum of texts"
            )


def property_of(schema: JsonSchema, name: str) -> JsonSchema:
    """Give the schema of one argument, with its reference followed."""
    return _followed(schema.get("properties", {}).get(name, {}), schema)


def _followed(described: Mapping[str, Any], schema: JsonSchema) -> JsonSchema:
    reference = described.get("$ref", "").removeprefix("#/$defs/")
    found = schema.get("$defs", {}).get(reference, {})
    return {**found, **{key: value for key, value in described.items() if key != "$ref"}}


def _is_textual(described: Mapping[str, Any], schema: JsonSchema) -> bool:
    if "anyOf" in described:
        return all(_is_textual(_followed(one, schema), schema) for one in described["anyOf"])
    return described.get("type", "string") in _TEXTUAL
