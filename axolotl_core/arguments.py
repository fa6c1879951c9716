"""Arguments that arrive as text: those of prompts and the variables of resource templates."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from axolotl_core.errors import ConfigurationError, InvalidArguments
from axolotl_core.schema import JsonSchema

ParseArguments: TypeAlias = Callable[[bytes], Any]
"""Validates raw JSON; raises InvalidArguments, or pydantic's ValidationError for `explain` to put into words."""

_SHOWN_PROBLEMS = 10
_WRONG_KINDS = ("_type", "_parsing", "_from_float")
"""How pydantic's names for findings end that mean another kind of value, not another value of that kind."""
_UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}
_JSON_NAMES: Mapping[type, str] = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "integer",
    list: "array",
    str: "string",
    type(None): "null",
}


class NoArguments(BaseModel):
    """The input of a tool that takes no arguments."""


def model_parser(model: type[BaseModel], *, strict: bool, forbid_extra: bool) -> ParseArguments:
    """Compile a validator that reads a model from JSON bytes, once."""
    extra: Literal["forbid"] | None = "forbid" if forbid_extra else None
    return partial(model.__pydantic_validator__.validate_json, strict=strict, extra=extra)


def refusal(problems: Sequence[str]) -> InvalidArguments:
    """Tell the caller all that is wrong with its arguments, in one text."""
    shown = list(problems[:_SHOWN_PROBLEMS])
    if len(problems) > _SHOWN_PROBLEMS:
        shown.append(f"and {len(problems) - _SHOWN_PROBLEMS} more")
    return InvalidArguments("Invalid arguments: " + "; ".join(shown))


def explain(error: ValidationError, model: Any) -> InvalidArguments:
    """Rewrite pydantic's findings as `field: what was expected, what was got`, without the caller's values."""
    known = [_public_name(name, field) for name, field in getattr(model, "model_fields", {}).items()]
    return refusal(explain_findings(error, known))


def explain_findings(error: ValidationError, known: Sequence[str], place: tuple[str, ...] = ()) -> list[str]:
    """Put each finding into words; `place` is where the validated value stands among the arguments."""
    findings = error.errors(include_url=False, include_context=False)
    return [_explain_one(finding, (*place, *finding["loc"]), known) for finding in findings]


def unknown_argument(name: str, known: Sequence[str]) -> str:
    """Say that there is no such argument, and which there are."""
    return f"{_path((name,))}: unknown argument; it takes {', '.join(known) or 'no arguments'}"


def _explain_one(finding: Any, location: Sequence[int | str], known: Sequence[str]) -> str:
    place = _path(location)
    if finding["type"] == "missing":
        return f"{place}: required, but missing"
    if finding["type"] in _UNKNOWN:
        return unknown_argument(str(location[0]), known) if len(location) == 1 else f"{place}: unknown argument"
    if not finding["type"].endswith(_WRONG_KINDS):
        return f"{place}: {finding['msg']}"
    return f"{place}: {finding['msg']}, got {_JSON_NAMES.get(type(finding['input']), 'something else')}"


def _public_name(name: str, field: FieldInfo) -> str:
    return field.validation_alias if isinstance(field.validation_alias, str) else name


def _path(location: Sequence[int | str]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part[:64]}" for part in location]
    return "".join(parts).removeprefix(".") or "arguments"


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
