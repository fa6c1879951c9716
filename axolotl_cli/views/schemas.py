"""Schemas in short form, and sample arguments and answers made from them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from axolotl_core.features.spec import ToolSpec
from axolotl_core.protocol.wire import encode
from axolotl_core.schema import resolve


def outline(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and description of each property of an object, or of a value of another type."""
    if schema.get("type") != "object" or "properties" not in schema:
        yield "", _type_of(schema, schema), schema.get("description", "")
        return
    required = schema.get("required", ())
    for name, value in schema["properties"].items():
        resolved = resolve(value, schema)
        presence = "" if name in required else ", optional"
        if "default" in resolved:
            presence = f" = {json.dumps(resolved['default'], ensure_ascii=False)}"
        yield name, _type_of(value, schema) + presence, resolved.get("description", "")


_MAX_NESTING: Final = 4
_MAX_PARTS: Final = 20
"""How deep a type is described, and how many of its alternatives: references may form a cycle, or a huge tree."""


def _type_of(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    if depth > _MAX_NESTING:
        return "…"
    resolved = resolve(schema, root)
    if "const" in resolved or "enum" in resolved:
        values = resolved.get("enum") or [resolved["const"]]
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    for keyword in ("anyOf", "oneOf"):
        if keyword in resolved:
            parts = resolved[keyword]
            shown = dict.fromkeys(_type_of(part, root, depth + 1) for part in parts[:_MAX_PARTS])
            return " | ".join([*shown, *(["…"] if len(parts) > _MAX_PARTS else [])])
    if resolved.get("type") == "array" and "items" in resolved:
        return f"array of {_type_of(resolved['items'], root, depth + 1)}"
    kind = resolved.get("type", "anything")
    return kind if isinstance(kind, str) else " | ".join(kind)


_BY_TYPE: Final[Mapping[str, Any]] = {"boolean": True, "null": None, "string": "hello"}
_BY_FORMAT: Final[Mapping[str, str]] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "ann@example.com",
    "time": "12:00:00Z",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_MAX_DEPTH: Final = 8


def sample_arguments(spec: ToolSpec) -> dict[str, Any] | None:
    """Make minimal arguments that a tool accepts; return None if that takes a human."""
    arguments = _sample(spec.input_schema, spec.input_schema, 0)
    try:
        spec.tool.argument_parser(coerce=False)(encode(arguments))
    except Exception:  # a validator of the tool's own may raise anything
        return None
    return arguments if isinstance(arguments, dict) else None


def sample_of(form: Mapping[str, Any]) -> Any:
    """Make an answer to a form with its required fields, or with all fields if none is required."""
    return _sample({**form, "required": form.get("required") or list(form.get("properties", ()))}, form, 0)


def _sample(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    """Take an example, choice or default of the schema, otherwise the simplest value of its type."""
    schema = resolve(schema, root)
    for keyword in ("examples", "enum", "anyOf", "oneOf", "allOf"):
        if schema.get(keyword):
            first = schema[keyword][0]
            return first if keyword in ("examples", "enum") else _sample(first, root, depth)
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    kind = schema.get("type", "string")
    if kind == "object":
        properties = schema.get("properties", {}) if depth <= _MAX_DEPTH else {}
        required = schema.get("required", ()) if depth <= _MAX_DEPTH else ()
        return {name: _sample(properties.get(name, {}), root, depth + 1) for name in required}
    if kind == "array":
        return [_sample(schema.get("items", {}), root, depth + 1)] * max(1, schema.get("minItems", 1))
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("maximum", 1))
    if kind == "string" and schema.get("format") in _BY_FORMAT:
        return _BY_FORMAT[schema["format"]]
    return _BY_TYPE.get(kind) if isinstance(kind, str) else None
