"""JSON Schema (2020-12) from types, without the noise a model has no use for."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, TypeAlias

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import core_schema

__all__ = ["JsonSchema", "closed", "object_schemas", "schema_of", "states_extra", "wrapped"]

JsonSchema: TypeAlias = dict[str, Any]


class _QuietJsonSchema(GenerateJsonSchema):
    """Leaves out the titles that only repeat a field's or a class's name: they cost a model tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchema:
        result = super().model_schema(schema)
        if "title" not in schema["cls"].model_config:
            result.pop("title", None)
        return result


def schema_of(adapter: TypeAdapter[Any], mode: JsonSchemaMode) -> JsonSchema:
    """Describe the adapter's type as it is read (`validation`) or written (`serialization`)."""
    return adapter.json_schema(schema_generator=_QuietJsonSchema, mode=mode)


def object_schemas(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Walk the object schemas that models made: the root and the definitions."""
    for candidate in (schema, *schema.get("$defs", {}).values()):
        if isinstance(candidate, dict) and candidate.get("type") == "object" and "properties" in candidate:
            yield candidate


def states_extra(schema: Mapping[str, Any]) -> bool:
    """Tell whether a model in the schema says itself what becomes of unknown fields."""
    return any("additionalProperties" in candidate for candidate in object_schemas(schema))


def closed(schema: JsonSchema) -> JsonSchema:
    """Refuse unknown fields, in the root and in every definition."""
    result = deepcopy(schema)
    result["additionalProperties"] = False
    for candidate in object_schemas(result):
        candidate["additionalProperties"] = False
    return result


def wrapped(schema: JsonSchema) -> JsonSchema:
    """Put a schema whose root is no object under the property `result`, for revisions that demand an object."""
    inner = deepcopy(schema)
    definitions = inner.pop("$defs", None)
    outer: JsonSchema = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return outer if definitions is None else {**outer, "$defs": definitions}
