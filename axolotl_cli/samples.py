"""Arguments to try a tool with, and answers to a form, made from their schemas."""

from collections.abc import Mapping
from typing import Any, Final

from axolotl_cli.outline import resolve
from axolotl_core.protocol.wire import encode
from axolotl_core.spec import ToolSpec

__all__ = ["sample_arguments", "sample_of"]

_BY_TYPE: Final[Mapping[str, Any]] = {"boolean": True, "integer": 1, "null": None, "number": 1, "string": "hello"}
_BY_FORMAT: Final[Mapping[str, str]] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "ann@example.com",
    "time": "12:00:00Z",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_DEEPEST: Final = 8


def sample_arguments(spec: ToolSpec) -> dict[str, Any] | None:
    """Make the smallest arguments that the tool accepts, None where that takes a human."""
    arguments = _sample(spec.input_schema, spec.input_schema, 0)
    try:
        spec.tool.argument_parser(coerce=False)(encode(arguments))
    except Exception:  # a validator of the tool's own may raise anything
        return None
    return arguments if isinstance(arguments, dict) else None


def sample_of(form: Mapping[str, Any]) -> Any:
    """Make an answer to a form: what must be filled in, or all of it where nothing must."""
    return _sample({**form, "required": form.get("required") or list(form.get("properties", ()))}, form, 0)


def _sample(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    """Take what the schema itself offers, else the simplest value of its type."""
    schema = resolve(schema, root)
    for offered in ("examples", "enum", "anyOf", "oneOf", "allOf"):
        if schema.get(offered):
            first = schema[offered][0]
            return first if offered in ("examples", "enum") else _sample(first, root, depth)
    for offered in ("const", "default"):
        if offered in schema:
            return schema[offered]
    return _of_type(schema, root, depth)


def _of_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type", "string")
    if kind == "object":
        return _object(schema, root, depth)
    if kind == "array":
        return [_sample(schema.get("items", {}), root, depth + 1)] * max(1, schema.get("minItems", 1))
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("maximum", 1))
    if kind == "string" and schema.get("format") in _BY_FORMAT:
        return _BY_FORMAT[schema["format"]]
    return _BY_TYPE.get(kind) if isinstance(kind, str) else None


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        return {}
    properties = schema.get("properties", {})
    return {name: _sample(properties.get(name, {}), root, depth + 1) for name in schema.get("required", ())}
