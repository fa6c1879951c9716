"""JSON Schema (2020-12) generated from Python types."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import core_schema

JsonSchema: TypeAlias = dict[str, Any]

_CACHE_SIZE: Final = 4096
_METHOD_NAMES: dict[Any, str] = {}


class SchemaGenerator(GenerateJsonSchema):
    """Generates schemas without titles that only repeat the name of a field or class, because titles cost tokens."""

    def build_schema_type_to_method(self) -> Any:
        """Look up the names of the methods once. Pydantic does that for each schema."""
        if not _METHOD_NAMES:
            found = super().build_schema_type_to_method()
            _METHOD_NAMES.update({kind: method.__name__ for kind, method in found.items()})
        return {kind: getattr(self, name) for kind, name in _METHOD_NAMES.items()}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchema:
        result = _untitled(super().model_schema(schema), schema["cls"])
        if self.mode == "validation" and schema["cls"].model_config.get("extra") == "ignore":
            result["additionalProperties"] = True  # pydantic leaves this out
        return result

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchema:
        return _untitled(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchema:
        return _untitled(super().typed_dict_schema(schema), schema.get("cls"))

    def generate(self, schema: core_schema.CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchema:
        result = super().generate(schema, mode)
        for candidate in (result, *result.get("$defs", {}).values()):
            if "enum" in candidate:
                candidate.pop("title", None)  # the name of the class, which pydantic adds last
        return result


def _untitled(schema: JsonSchema, kind: type | None) -> JsonSchema:
    if kind is not None and schema.get("title") == kind.__name__:
        del schema["title"]
    return schema


def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return the adapter that validates and serializes a type. Tools share it."""
    return _adapter(kind) if _is_hashable(kind) else TypeAdapter(kind)


def schema_of(kind: Any, mode: JsonSchemaMode) -> JsonSchema:
    """Describe a type for `validation` or `serialization`. Do not change the result, which is cached."""
    return _schema(kind, mode) if _is_hashable(kind) else _describe(TypeAdapter(kind), mode)


def schemas_of(
    adapters: Sequence[TypeAdapter[Any]], generator: type[GenerateJsonSchema] = SchemaGenerator
) -> tuple[list[JsonSchema], JsonSchema]:
    """Describe several types for validation, with shared definitions."""
    mode: JsonSchemaMode = "validation"
    inputs = [(number, mode, adapter) for number, adapter in enumerate(adapters)]
    schemas, shared = TypeAdapter.json_schemas(inputs, schema_generator=generator)
    return [schemas[number, mode] for number, *_ in inputs], shared.get("$defs", {})


@lru_cache(maxsize=_CACHE_SIZE)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@lru_cache(maxsize=_CACHE_SIZE)
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
    """Copy the definition of a recursive type to the root, where clients look for `type`."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    definition = schema.get("$defs", {}).get(name, {})
    return {**definition, **{key: value for key, value in schema.items() if key != "$ref"}}


def object_schemas(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Find the object schemas of models: the root and the definitions."""
    for candidate in (schema, *schema.get("$defs", {}).values()):
        if isinstance(candidate, dict) and candidate.get("type") == "object" and "properties" in candidate:
            yield candidate


def admits_extra(schema: Mapping[str, Any]) -> bool:
    """Whether a model in the schema accepts unknown fields explicitly."""
    return any(candidate.get("additionalProperties", False) is not False for candidate in object_schemas(schema))


def closed(schema: JsonSchema) -> JsonSchema:
    """Forbid unknown fields in the root and in every definition."""
    result = deepcopy(schema)
    for candidate in object_schemas(result):
        candidate["additionalProperties"] = False
    return result


def wrapped(schema: JsonSchema) -> JsonSchema:
    """Put a schema whose root is not an object under the property `result`, for revisions that require an object."""
    inner = deepcopy(schema)
    definitions = inner.pop("$defs", None)
    outer: JsonSchema = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return outer if definitions is None else {**outer, "$defs": definitions}
