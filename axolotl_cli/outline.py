"""A JSON Schema in a few words, for people."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Line", "outline", "resolve"]

Line = tuple[str, str, str]
"""The name of a value, its type, and what is said about it."""


def outline(schema: Mapping[str, Any]) -> Iterator[Line]:
    """Give a line for each property of an object, or one for a value of another type."""
    if schema.get("type") != "object" or "properties" not in schema:
        yield "", _type_of(schema, schema), schema.get("description", "")
        return
    required = schema.get("required", ())
    for name, value in schema["properties"].items():
        resolved = resolve(value, schema)
        yield name, _type_of(value, schema) + _presence(resolved, name in required), resolved.get("description", "")


def resolve(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference; what stands beside it wins."""
    if not isinstance(schema, Mapping):
        return {}
    reference = str(schema.get("$ref", ""))
    definition = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
    return {**definition, **{key: value for key, value in schema.items() if key != "$ref"}}


def _presence(schema: Mapping[str, Any], required: bool) -> str:
    if "default" in schema:
        return f" = {json.dumps(schema['default'], ensure_ascii=False)}"
    return "" if required else ", optional"


def _type_of(schema: Any, root: Mapping[str, Any]) -> str:
    resolved = resolve(schema, root)
    if "const" in resolved or "enum" in resolved:
        values = resolved.get("enum") or [resolved["const"]]
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    for keyword in ("anyOf", "oneOf"):
        if keyword in resolved:
            return " | ".join(dict.fromkeys(_type_of(part, root) for part in resolved[keyword]))
    if resolved.get("type") == "array" and "items" in resolved:
        return f"array of {_type_of(resolved['items'], root)}"
    kind = resolved.get("type", "anything")
    return kind if isinstance(kind, str) else " | ".join(kind)
