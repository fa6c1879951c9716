"""From the bytes of a call's arguments to the value its tool receives."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from axolotl_core.errors import InvalidArguments

__all__ = ["NoArguments", "ParseArguments", "explain", "model_parser", "refusal"]

ParseArguments: TypeAlias = Callable[[bytes], Any]
"""Validates raw JSON; raises InvalidArguments, or pydantic's ValidationError for `explain` to put into words."""

_SHOWN_PROBLEMS = 10
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
    findings = error.errors(include_url=False, include_context=False)
    return refusal([_explain_one(finding, known) for finding in findings])


def _explain_one(finding: Any, known: Sequence[str]) -> str:
    place = _path(finding["loc"])
    if finding["type"] == "missing":
        return f"{place}: required, but missing"
    if finding["type"] in _UNKNOWN:
        expected = f"; this tool takes {', '.join(known) or 'no arguments'}" if len(finding["loc"]) == 1 else ""
        return f"{place}: unknown argument{expected}"
    return f"{place}: {finding['msg']}, got {_JSON_NAMES.get(type(finding['input']), 'something else')}"


def _public_name(name: str, field: FieldInfo) -> str:
    return field.validation_alias if isinstance(field.validation_alias, str) else name


def _path(location: Sequence[int | str]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part[:64]}" for part in location]
    return "".join(parts).removeprefix(".") or "arguments"
