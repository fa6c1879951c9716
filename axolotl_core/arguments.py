"""Parsing and validation of arguments, texts of validation errors, and arguments that arrive as text."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from axolotl_core.errors import ConfigurationError, InvalidArguments
from axolotl_core.schema import JsonSchema

ParseArguments: TypeAlias = Callable[[bytes], Any]
"""Validates raw JSON. Raises InvalidArguments, or pydantic's ValidationError, which `explain` translates."""

_MAX_PROBLEMS: Final = 10
_TEXT_TYPES: Final = ("string", "integer", "number", "boolean")
_USABLE_TYPES: Final = "str, int, float, bool, a date, a Literal of strings or an Enum of strings"
_RECURSION: Final[JsonSchema] = {"type": "object"}
"""Replaces a type within itself, because no text can represent it."""
_WRONG_TYPE_SUFFIXES = ("_type", "_parsing", "_from_float")
"""Suffixes of pydantic's error types for values of the wrong type."""
_UNKNOWN_ARGUMENT = {"extra_forbidden", "unexpected_keyword_argument"}
_JSON_TYPES: Mapping[type, str] = {
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
    """Compile a validator that reads a model from JSON bytes."""
    extra: Literal["forbid"] | None = "forbid" if forbid_extra else None
    return partial(model.__pydantic_validator__.validate_json, strict=strict, extra=extra)


def refusal(problems: Sequence[str]) -> InvalidArguments:
    """Combine all problems with the arguments into one error."""
    return InvalidArguments(f"Invalid arguments: {join_problems(problems)}")


def join_problems(problems: Sequence[str]) -> str:
    """List problems in one text, but only the first ten of them."""
    more = [f"and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
    return "; ".join([*problems[:_MAX_PROBLEMS], *more])


def explain(error: ValidationError, model: Any) -> InvalidArguments:
    """Translate a validation error to `field: expected, got`, without the caller's values."""
    known = [_public_name(name, field) for name, field in getattr(model, "model_fields", {}).items()]
    return refusal(explain_findings(error, known))


def explain_findings(error: ValidationError, known: Sequence[str], place: tuple[str, ...] = ()) -> list[str]:
    """Describe each problem. `place` is the path of the validated value within the arguments."""
    findings = error.errors(include_url=False, include_context=False)
    return [_explain_one(finding, (*place, *finding["loc"]), known) for finding in findings]


def unknown_argument(name: str, known: Sequence[str]) -> str:
    """Describe an unknown argument and list the known ones."""
    return f"{_path((name,))}: unknown argument; it takes {', '.join(known) or 'no arguments'}"


def _explain_one(finding: Any, location: Sequence[int | str], known: Sequence[str]) -> str:
    place = _path(location)
    if finding["type"] == "missing":
        return f"{place}: required, but missing"
    if finding["type"] in _UNKNOWN_ARGUMENT:
        return unknown_argument(str(location[0]), known) if len(location) == 1 else f"{place}: unknown argument"
    if not finding["type"].endswith(_WRONG_TYPE_SUFFIXES):
        return f"{place}: {finding['msg']}"
    return f"{place}: {finding['msg']}, got {_JSON_TYPES.get(type(finding['input']), 'something else')}"


def _public_name(name: str, field: FieldInfo) -> str:
    return field.validation_alias if isinstance(field.validation_alias, str) else name


def _path(location: Sequence[int | str]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part[:64]}" for part in location]
    return "".join(parts).removeprefix(".") or "arguments"


def check_textual(owner: str, schema: JsonSchema, *, lists: Collection[str] = ()) -> None:
    """Check that each argument can be parsed from a string, or from a list of strings if `lists` contains its name.

    Raises:
        ConfigurationError: if one of them cannot, or if the arguments have no names.
    """
    if schema.get("type", "object") != "object":
        raise ConfigurationError(f"{owner}: arguments need names; use a model with one field per argument")
    for name in schema.get("properties", {}):
        alternatives = tuple(_alternatives(property_of(schema, name)))
        if name in lists and not all(map(_is_list, alternatives)):
            raise ConfigurationError(f"{owner}: {name} cannot be parsed from strings; use a list of {_USABLE_TYPES}")
        if name not in lists and not all(map(_is_textual, alternatives)):
            raise ConfigurationError(f"{owner}: {name} cannot be parsed from a string; use {_USABLE_TYPES}")


def property_of(schema: JsonSchema, name: str) -> JsonSchema:
    """Return the schema of one argument, with references resolved."""
    return _resolved(schema.get("properties", {}).get(name, {}), schema, frozenset())


def _resolved(described: Mapping[str, Any], schema: JsonSchema, above: frozenset[str]) -> JsonSchema:
    """Inline references, without the titles of types, because they are not titles of arguments."""
    own = {key: value for key, value in described.items() if key != "$ref"}
    reference = described.get("$ref", "").removeprefix("#/$defs/")
    if reference in above:
        return _RECURSION
    if reference:
        above |= {reference}
        found = _resolved(schema.get("$defs", {}).get(reference, {}), schema, above)
        return {key: value for key, value in found.items() if key != "title"} | own
    for key in ("anyOf", "oneOf"):
        if key in own:
            own[key] = [_resolved(one, schema, above) for one in own[key]]
    if "items" in own:
        own["items"] = _resolved(own["items"], schema, above)
    return own


def _alternatives(described: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Split a union into its members, without null, which no text represents."""
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
    return readable and described.get("type", "string") in _TEXT_TYPES


def _is_list(described: Mapping[str, Any]) -> bool:
    items = described.get("items", {})
    return described.get("type", "array") == "array" and all(map(_is_textual, _alternatives(items)))
