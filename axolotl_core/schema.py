"""JSON Schema (2020-12) generated from Python types."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache, wraps
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticErrorMixin, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import core_schema

JsonSchema: TypeAlias = dict[str, Any]
P = ParamSpec("P")
R = TypeVar("R")

_CACHE_SIZE: Final = 4096
_MAX_INLINED_SCHEMAS: Final = 10_000
_DEFINITION_PREFIX: Final = "#/$defs/"
_SCHEMA_MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "definitions", "$defs"})
_DATA: Final = frozenset({"const", "default", "dependentRequired", "enum", "examples"})
_ANNOTATIONS: Final = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
)
_GROUPS: Final = (
    {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties"},
    {"prefixItems", "items", "unevaluatedItems"},
    {"contains", "minContains", "maxContains"},
    {"if", "then", "else"},
)
"""Keywords whose meaning depends on the others in the same schema."""


class SchemaGenerator(GenerateJsonSchema):
    """Generates schemas without titles that only repeat the name of a field or class, because titles cost tokens."""

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


def by_type(describe: Callable[P, R]) -> Callable[P, R]:
    """Cache a function of a type; the few types that cannot be hashed are described each time."""
    cached = cast("Callable[P, R]", lru_cache(maxsize=_CACHE_SIZE)(describe))

    @wraps(describe)
    def described(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            hash(args)
        except TypeError:
            return describe(*args, **kwargs)
        return cached(*args, **kwargs)

    return described


@by_type
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return the adapter that validates and serializes a type. Tools share it."""
    adapter = TypeAdapter(kind)
    if not adapter.pydantic_complete:
        adapter.rebuild(raise_errors=True)  # the error names the type that is missing
    return adapter


@by_type
def schema_of(kind: Any, mode: JsonSchemaMode) -> JsonSchema:
    """Describe a type for `validation` or `serialization`. Do not change the result, which is cached."""
    schema = adapter_of(kind).json_schema(schema_generator=SchemaGenerator, mode=mode)
    return resolve(schema, schema)  # clients look for `type` at the root, also of a recursive type


def explain_type_error(error: Exception) -> str:
    """Say why pydantic cannot use a type, and what to write."""
    if isinstance(error, PydanticUndefinedAnnotation):
        return explain_undefined(error.name)
    if isinstance(error, PydanticUserError) and error.code == "typed-dict-version":
        return "before Python 3.12, TypedDict must come from typing_extensions, not from typing"
    return error.message if isinstance(error, PydanticErrorMixin) else str(error)


def explain_undefined(name: str | None) -> str:
    """Say what to write if an annotation names a type that is not defined."""
    return (
        f"an annotation names {name}, which is not defined: define it, or import it, in the same module "
        "(not in a function or under TYPE_CHECKING)"
    )


def schemas_of(
    adapters: Sequence[TypeAdapter[Any]], generator: type[GenerateJsonSchema] = SchemaGenerator
) -> tuple[list[JsonSchema], JsonSchema]:
    """Describe several types for validation, with shared definitions."""
    mode: JsonSchemaMode = "validation"
    inputs = [(number, mode, adapter) for number, adapter in enumerate(adapters)]
    schemas, shared = TypeAdapter.json_schemas(inputs, schema_generator=generator)
    return [schemas[number, mode] for number, *_ in inputs], shared.get("$defs", {})


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
    """Put a schema whose root is not an object under the property `result`, for revisions that require an object.

    FastMCP's client looks for the extra keyword and returns the value without the object around it.
    """
    inner = deepcopy(schema)
    definitions = inner.pop("$defs", None)
    outer: JsonSchema = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    outer["x-fastmcp-wrap-result"] = True
    return outer if definitions is None else {**outer, "$defs": definitions}


def subschemas(schema: Any) -> Iterator[JsonSchema]:
    """Find all schemas in a schema that are objects, the outermost first."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            yield node
            for key, value in node.items():
                if key in _SCHEMA_MAPS and isinstance(value, dict):
                    waiting.extend(value.values())
                elif key not in _DATA and not key.startswith("x-"):
                    waiting.append(value)


def resolve(schema: Any, root: Mapping[str, Any]) -> JsonSchema:
    """Follow a reference to a definition of the root; keywords next to it take precedence."""
    if not isinstance(schema, Mapping):
        return {}
    name = str(schema.get("$ref", "")).removeprefix(_DEFINITION_PREFIX)
    return {**root.get("$defs", {}).get(name, {}), **{key: value for key, value in schema.items() if key != "$ref"}}


def inlined(schema: JsonSchema) -> JsonSchema:
    """Replace the references to `$defs` by the definitions, except those of recursive types.

    Raises:
        ValueError: if the result would be too large, because definitions are used many times.
    """
    return _Inlining(schema.get("$defs", {})).run(schema)


class _Inlining:
    """The replacement of the references in one schema."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        uses = {
            name: {used for node in subschemas(definition) if (used := _definition_name(node.get("$ref"))) is not None}
            for name, definition in definitions.items()
        }
        self._recursive = {name for name in uses if name in _reachable(name, uses)}
        self._count = 0

    def run(self, schema: JsonSchema) -> JsonSchema:
        result: JsonSchema = self._schema({key: value for key, value in schema.items() if key != "$defs"})
        kept = {name: self._schema(self._definitions[name]) for name in self._definitions if name in self._recursive}
        return {**result, "$defs": kept} if kept else result

    def _schema(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._schema(item) for item in schema]
        if not isinstance(schema, Mapping):
            return schema
        self._count += 1
        if self._count > _MAX_INLINED_SCHEMAS:
            raise ValueError(f"it has more than {_MAX_INLINED_SCHEMAS} parts if its references are inlined")
        own = {key: self._member(key, value) for key, value in schema.items()}
        name = _definition_name(own.get("$ref"))
        if name is None or name not in self._definitions or name in self._recursive:
            return own
        del own["$ref"]
        definition = self._schema(self._definitions[name])
        if not isinstance(definition, dict) or (
            # keywords next to a reference would change their meaning among those of the definition
            own.keys() & definition.keys() - _ANNOTATIONS
            or any(own.keys() & group and definition.keys() & group for group in _GROUPS)
        ):
            return {**own, "allOf": [definition, *own.get("allOf", ())]}
        return {**definition, **own}

    def _member(self, key: str, value: Any) -> Any:
        if key in _DATA or key.startswith("x-"):
            return value
        if key in _SCHEMA_MAPS and isinstance(value, Mapping):
            return {name: self._schema(child) for name, child in value.items()}
        if key == "discriminator" and isinstance(value, Mapping):
            return {name: child for name, child in value.items() if name != "mapping"}  # it refers to definitions
        return self._schema(value)


def _definition_name(reference: Any) -> str | None:
    if not isinstance(reference, str) or not reference.startswith(_DEFINITION_PREFIX):
        return None
    name = reference.removeprefix(_DEFINITION_PREFIX)
    return None if "/" in name else name.replace("~1", "/").replace("~0", "~")


def _reachable(name: str, uses: Mapping[str, set[str]]) -> set[str]:
    """Return the definitions that a definition uses, directly or indirectly."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = uses.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return found
