"""Arguments that arrive as text: those of prompts and the variables of resource templates."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from axolotl_core.errors import ConfigurationError
from axolotl_core.schema import JsonSchema

__all__ = ["check_textual", "property_of"]

_TEXTUAL: Final = ("string", "integer", "number", "boolean")
_USABLE: Final = "str, int, float, bool, a date, a Literal of texts or an Enum of texts"
_ENDLESS: Final[JsonSchema] = {"type": "object"}
"""What stands for a type within itself: whatever it holds, no text can hold it."""


def check_textual(owner: str, schema: JsonSchema, *, lists: Collection[str] = ()) -> None:
    """Make sure that each argument can be read from text, or, if `lists` names it, from a list of texts.

    Raises:
        ConfigurationError: with the name of one that cannot, or if they have no names at all.
    """
    if schema.get("type", "object") != "object":
        raise ConfigurationError(f"{owner}: arguments have names; use a model with a field for each")
    for name in schema.get("properties", {}):
        alternatives = tuple(_alternatives(property_of(schema, name)))
        if name in lists and not all(map(_is_list, alternatives)):
            raise ConfigurationError(f"{owner}: {name} arrives as a list of texts; use a list of {_USABLE}")
        if name not in lists and not all(map(_is_textual, alternatives)):
            raise ConfigurationError(f"{owner}: {name} arrives as text and cannot be made of it; use {_USABLE}")


def property_of(schema: JsonSchema, name: str) -> JsonSchema:
    """Give the schema of one argument, with its references followed."""
    return _followed(schema.get("properties", {}).get(name, {}), schema, frozenset())


def _followed(described: Mapping[str, Any], schema: JsonSchema, above: frozenset[str]) -> JsonSchema:
    """Write out what is referred to, without the titles of types: they are no titles of arguments."""
    said = {key: value for key, value in described.items() if key != "$ref"}
    reference = described.get("$ref", "").removeprefix("#/$defs/")
    if reference in above:
        return _ENDLESS
    if reference:
        above |= {reference}
        found = _followed(schema.get("$defs", {}).get(reference, {}), schema, above)
        return {key: value for key, value in found.items() if key != "title"} | said
    for key in ("anyOf", "oneOf"):
        if key in said:
            said[key] = [_followed(one, schema, above) for one in said[key]]
    if "items" in said:
        said["items"] = _followed(said["items"], schema, above)
    return said


def _alternatives(described: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Take a union apart; its null is left out, as no text means it."""
    members = described.get("anyOf", described.get("oneOf"))
    if members is None:
        yield described
        return
    for member in members:
        if member.get("type") != "null":
            yield from _alternatives(member)


def _is_textual(described: Mapping[str, Any]) -> bool:
    choices = described.get("enum", [described["const"]] if "const" in described else [])
    readable = all(isinstance(choice, str | None) for choice in choices)
    return readable and described.get("type", "string") in _TEXTUAL


def _is_list(described: Mapping[str, Any]) -> bool:
    items = described.get("items", {})
    return described.get("type", "array") == "array" and all(map(_is_textual, _alternatives(items)))
