"""From the bytes of a call's arguments to the value its tool receives."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from axolotl_core.errors import InvalidArguments

__all__ = [
    "NoArguments",
    "ParseArguments",
    "explain",
    "explain_findings",
    "model_parser",
    "refusal",
    "unknown_argument",
]

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
