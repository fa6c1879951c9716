"""JSON Schema (2020-12) from types, without the noise a model has no use for."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import core_schema

_REMEMBERED: Final = 4096

JsonSchema: TypeAlias = dict[str, Any]


_METHOD_NAMES: dict[Any, str] = {}


class SchemaGenerator(GenerateJsonSchema):
    """Leaves out the titles that only repeat a field's or a class's name: they cost a model tokens."""

    def build_schema_type_to_method(self) -> Any:
        """Bind the methods by names found once: pydantic looks all of them up for each schema it makes."""
        if not _METHOD_NAMES:
            found = super().build_schema_type_to_method()
            _METHOD_NAMES.update({kind: method.__name__ for kind, method in found.items()})
        return {kind: getattr(self, name) for kind, name in _METHOD_NAMES.items()}

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


def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Give what validates and writes a type, made once for all tools that use it."""
    return _adapter(kind) if _is_hashable(kind) else TypeAdapter(kind)


def schema_of(kind: Any, mode: JsonSchemaMode) -> JsonSchema:
    """Describe a type as it is read (`validation`) or written (`serialization`); the answer is shared."""
    return _schema(kind, mode) if _is_hashable(kind) else _describe(TypeAdapter(kind), mode)


def schemas_of(
    adapters: Sequence[TypeAdapter[Any]], generator: type[GenerateJsonSchema] = SchemaGenerator
) -> tuple[list[JsonSchema], JsonSchema]:
    """Describe several types for validation, with shared definitions."""
    mode: JsonSchemaMode = "validation"
    inputs = [(number, mode, adapter) for number, adapter in enumerate(adapters)]
    schemas, shared = TypeAdapter.json_schemas(inputs, schema_generator=generator)
    return [schemas[number, mode] for number, *_ in inputs], shared.get("$defs", {})


@lru_cache(maxsize=_REMEMBERED)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@lru_cache(maxsize=_REMEMBERED)
def _schema(kind: Any, mode: JsonSchemaMode) -> JsonSchema:
    return _describe(_adapter(kind), mode)


def _describe(adapter: TypeAdapter[Any], mode: JsonSchemaMode) -> JsonSchema:
    return _with_own_root(adapter.json_schema(schema_generator=SchemaGenerator, mode=mode))


def _is_hashable(kind: Any) -> bool:
    try:
        hash(kind)
    except TypeError:
        return False
    return True


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
