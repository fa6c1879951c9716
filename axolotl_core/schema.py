"""JSON Schema (2020-12) from types, without the noise a model has no use for."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, TypeAlias

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import core_schema

__all__ = ["JsonSchema", "admits_extra", "closed", "object_schemas", "schema_of", "wrapped"]

JsonSchema: TypeAlias = dict[str, Any]


class _QuietJsonSchema(GenerateJsonSchema):
    """Leaves out the titles that only repeat a field's or a class's name: they cost a model tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchema:
        result = _untitled(super().model_schema(schema), schema["cls"])
        if self.mode == "validation" and schema["cls"].model_config.get("extra") == "ignore":
            result["additionalProperties"] = True  # said in so many words; pydantic writes nothing for it
        return result

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchema:
        return _untitled(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchema:
        return _untitled(super().typed_dict_schema(schema), schema.get("cls"))

    def generate(self, schema: core_schema.CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchema:
        result = super().generate(schema, mode)
        for candidate in (result, *result.get("$defs", {}).values()):
            if "enum" in candidate:
                candidate.pop("title", None)  # an enum's name, which pydantic adds last of all
        return result


def _untitled(schema: JsonSchema, kind: type | None) -> JsonSchema:
    if kind is not None and schema.get("title") == kind.__name__:
        del schema["title"]
    return schema


def schema_of(adapter: TypeAdapter[Any], mode: JsonSchemaMode) -> JsonSchema:
    """Describe the adapter's type as it is read (`validation`) or written (`serialization`)."""
    return _with_own_root(adapter.json_schema(schema_generator=_QuietJsonSchema, mode=mode))


def _with_own_root(schema: JsonSchema) -> JsonSchema:
    """Repeat at the root what a recursive type's root refers to: clients look for its `type` there."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    definition = schema.get("$defs", {}).get(name, {})
    return {**definition, **{key: value for key, value in schema.items() if key != "$ref"}}


def object_schemas(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Walk the object schemas that models made: the root and the definitions."""
    for candidate in (schema, *schema.get("$defs", {}).values()):
        if isinstance(candidate, dict) and candidate.get("type") == "object" and "properties" in candidate:
            yield candidate


def admits_extra(schema: Mapping[str, Any]) -> bool:
    """Tell whether a model in the schema says itself that unknown fields may pass."""
    return any(candidate.get("additionalProperties", False) is not False for candidate in object_schemas(schema))


def closed(schema: JsonSchema) -> JsonSchema:
    """Refuse unknown fields, in the root and in every definition."""
    result = deepcopy(schema)
    for candidate in object_schemas(result):
        candidate["additionalProperties"] = False
    return result


def wrapped(schema: JsonSchema) -> JsonSchema:
    """Put a schema whose root is no object under the property `result`, for revisions that demand an object."""
    inner = deepcopy(schema)
    definitions = inner.pop("$defs", None)
    outer: JsonSchema = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return outer if definitions is None else {**outer, "$defs": definitions}
