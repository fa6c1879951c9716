"""Parsing and validation of arguments, texts of validation errors, and arguments that arrive as text."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from axolotl_core.errors import ConfigurationError, InvalidArguments
from axolotl_core.protocol.client_text import shorten
from axolotl_core.protocol.json_limits import duplicate_error, has_duplicates
from axolotl_core.schema import JsonSchema

ParseArguments: TypeAlias = Callable[[bytes], Any]
"""Validates raw JSON. Raises InvalidArguments, or pydantic's ValidationError, which `explain` translates."""

MAX_PROBLEMS: Final = 20
"""How many problems with the arguments an error reports."""
LARGE_BYTES: Final = 2048
"""Of larger arguments, only the first problem of each array or object is looked for."""
_MAX_FINDINGS: Final = 1000
_MAX_REASON_CHARACTERS: Final = 500
_COLLECTIONS: Final = ("list", "tuple", "set", "frozenset", "dict")
_NOT_SCHEMAS: Final = ("cls", "default", "metadata", "serialization")
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
    validate = model.__pydantic_validator__.validate_json
    validate_large = json_validator(model.__pydantic_validator__, lambda: model.__pydantic_core_schema__, strict, extra)

    def parse(raw: bytes) -> Any:
        small = len(raw) <= LARGE_BYTES
        arguments = validate(raw, strict=strict, extra=extra) if small else validate_large(raw)
        try:
            names = len(arguments.__pydantic_fields_set__)
        except AttributeError:  # a validator has replaced the model
            names = 0
        if raw.count(b":") != names:
            refuse_duplicates(raw)
        return arguments

    return parse


def json_validator(
    validator: Any, core_schema: Callable[[], Any], strict: bool, extra: Literal["forbid"] | None
) -> Callable[[bytes], Any]:
    """Make a function that validates raw JSON.

    An error for every item of a large array takes much more time and memory than the array itself. The validator for
    large values stops at the first wrong item of each array or object. It is compiled when it is first needed.
    """
    validate = validator.validate_json
    thrifty: SchemaValidator | None = None

    def validated(raw: bytes) -> Any:
        nonlocal thrifty
        if len(raw) <= LARGE_BYTES:
            return validate(raw, strict=strict, extra=extra)
        if thrifty is None:
            thrifty = SchemaValidator(_failing_fast(core_schema()), _use_prebuilt=False)
        return thrifty.validate_json(raw, strict=strict, extra=extra)

    return validated


def _failing_fast(schema: Any) -> Any:
    """Copy pydantic's description of a validator, and let it stop at the first wrong item of each collection."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_failing_fast, schema))
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if not isinstance(kind, str):
        return {name: _failing_fast(member) for name, member in schema.items()}
    copied = {name: one if name in _NOT_SCHEMAS else _failing_fast(one) for name, one in schema.items()}
    return {**copied, "fail_fast": True} if kind in _COLLECTIONS else copied


def refuse_duplicates(raw: bytes) -> None:
    """Check that no object in raw arguments has two members with the same name.

    This takes time. There are none if the arguments contain as many colons as names at the top level.

    Raises:
        InvalidRequest: with the name of such a member.
    """
    if has_duplicates(raw):
        raise duplicate_error(raw)


def refusal(problems: Sequence[str], count: int | None = None) -> InvalidArguments:
    """Combine problems with the arguments into one error. `count` is their number, if not all of them are given."""
    return InvalidArguments(f"Invalid arguments: {join_problems(problems, count)}")


def join_problems(problems: Sequence[str], count: int | None = None) -> str:
    """List problems in one text, but only the first of them."""
    more = (len(problems) if count is None else count) - len(problems[:MAX_PROBLEMS])
    return "; ".join([*problems[:MAX_PROBLEMS], *([f"and {more} more"] if more > 0 else [])])


def explain(error: ValidationError, model: Any) -> InvalidArguments:
    """Translate a validation error to `field: expected, got`, without the caller's values."""
    fields = getattr(model, "model_fields", {}).items()
    known = [field.validation_alias if isinstance(field.validation_alias, str) else name for name, field in fields]
    return refusal(explain_findings(error, known))


def explain_findings(error: ValidationError, known: Sequence[str], place: tuple[str, ...] = ()) -> list[str]:
    """Describe each problem. `place` is the path of the validated value within the arguments."""
    if error.error_count() > _MAX_FINDINGS:
        return [f"{_path(place)}: {error.error_count()} problems, too many to list"]
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
        return f"{place}: {finding['msg'][:_MAX_REASON_CHARACTERS]}"
    return f"{place}: {finding['msg']}, got {_JSON_TYPES.get(type(finding['input']), 'something else')}"


def _path(location: Sequence[int | str]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part[:64]}" for part in location]
    return shorten("".join(parts).removeprefix(".")) or "arguments"


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
