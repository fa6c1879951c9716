"""Redaction of arguments: values that may be sensitive are masked or left out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from pydantic import BaseModel, WithJsonSchema

from axolotl_core.features.function_feature import FunctionFeature
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.policies.audit import Sensitive
from axolotl_core.protocol.wire import decode_exactly
from axolotl_core.schema import JsonSchema, SchemaGenerator, adapter_of, schemas_of
from axolotl_server.audit.records import Redact

_MASK: Final = "***"
_MAX_BYTES: Final = 16 * 1024
"""Larger arguments are not shown at all, to keep records small."""
_HIDDEN: Final[JsonSchema] = {"writeOnly": True}
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
_ANYTHING: Final[JsonSchema] = {"type": ["null", *_SCALARS], "items": {}, "additionalProperties": {}}

_encode: Final = msgspec.json.Encoder().encode


def redactor(spec: FeatureSpec) -> Redact | None:
    """Compile the redaction of a feature's arguments; None if they have no types, as with a raw schema."""
    schema = _schema_of(spec.feature)
    if schema is None:
        return None
    shape = _Compiler(schema["$defs"]).shape_of([schema])

    def redact(raw: bytes) -> msgspec.Raw | None:
        if len(raw) > _MAX_BYTES:
            return None
        try:
            return msgspec.Raw(_encode(_shown(decode_exactly(raw), shape)))
        except (ValueError, RecursionError):
            return None

    return redact


def _schema_of(feature: Any) -> JsonSchema | None:
    if isinstance(feature, FunctionFeature):
        parameters = feature.signature.parameters
        schemas, definitions = schemas_of([one.adapter for one in parameters], _RedactionSchema)
        properties = {one.public_name: schema for one, schema in zip(parameters, schemas, strict=True)}
        return {"properties": properties, "$defs": definitions}
    model = getattr(feature, "input_model", None)
    if isinstance(model, type) and issubclass(model, BaseModel):
        [schema], definitions = schemas_of([adapter_of(model)], _RedactionSchema)
        return {**schema, "$defs": definitions}
    return None


@dataclass(slots=True, eq=False)
class _Shape:
    """The forms that a value may have: as a scalar, an object or an array."""

    hidden: bool = False
    null: bool = False
    scalar: bool = False
    fields: "dict[str, _Shape]" = field(default_factory=dict)
    values: "_Shape | None" = None
    """The values of an object with arbitrary names."""
    items: "_Shape | None" = None


def _shown(value: Any, shape: _Shape) -> Any:
    """Copy a JSON value. Mask values that are hidden or have another form, and leave out unknown names."""
    if shape.hidden:
        return _MASK
    if isinstance(value, dict):
        if value and not shape.fields and shape.values is None:
            return _MASK
        shapes = {name: shape.fields.get(name, shape.values) for name in value}
        return {name: _shown(value[name], inner) for name, inner in shapes.items() if inner is not None}
    if isinstance(value, list):
        return _MASK if shape.items is None else [_shown(item, shape.items) for item in value]
    return value if (shape.null if value is None else shape.scalar) else _MASK


class _Compiler:
    """Turns JSON Schemas into shapes."""

    def __init__(self, definitions: JsonSchema) -> None:
        self._definitions = definitions
        self._known: dict[frozenset[int], _Shape] = {}

    def shape_of(self, schemas: Iterable[JsonSchema]) -> _Shape:
        """Compile the shape of values that match one of the schemas."""
        forms = {id(form): form for schema in schemas for form in self._forms(schema)}
        key = frozenset(forms)
        if key not in self._known:
            self._known[key] = _Shape()  # known before it is filled, because types may contain themselves
            self._fill(self._known[key], list(forms.values()))
        return self._known[key]

    def _fill(self, shape: _Shape, forms: Sequence[JsonSchema]) -> None:
        shape.hidden = any("writeOnly" in form for form in forms)
        kinds = {kind for form in forms for kind in _kinds(form)}
        shape.null, shape.scalar = "null" in kinds, not _SCALARS.isdisjoint(kinds)
        values = [
            form["additionalProperties"]
            for form in forms
            if "additionalProperties" in form and "properties" not in form  # values of arbitrary names
        ]
        items = [item for form in forms for item in _items(form)]
        shape.values = self.shape_of(values) if values else None
        shape.items = self.shape_of(items) if items else None
        for name in {name: None for form in forms for name in form.get("properties", ())}:
            fields = [form["properties"][name] for form in forms if name in form.get("properties", ())]
            shape.fields[name] = self.shape_of([*fields, *values])

    def _forms(self, schema: JsonSchema) -> Iterator[JsonSchema]:
        """Follow references and take unions apart. A schema without constraints admits anything."""
        if not schema.keys() - {"title", "description", "default"}:
            yield _ANYTHING
        if "$ref" in schema:
            yield from self._forms(self._definitions[schema["$ref"].removeprefix("#/$defs/")])
        for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            yield from self._forms(one)
        names = self._forms(schema["propertyNames"]) if "propertyNames" in schema else ()
        yield _HIDDEN if any("writeOnly" in name for name in names) else schema


def _items(form: JsonSchema) -> Iterator[JsonSchema]:
    yield from form.get("prefixItems", ())
    if isinstance(form.get("items"), dict):
        yield form["items"]


def _kinds(form: JsonSchema) -> Sequence[str]:
    kinds: str | Sequence[str] = form.get("type", "string" if "enum" in form or "const" in form else ())
    return [kinds] if isinstance(kinds, str) else kinds


class _RedactionSchema(SchemaGenerator):
    """JSON Schema in which no mark is lost: types are hidden if their schema may differ from what they accept."""

    def generate_inner(self, schema: Any) -> JsonSchema:
        metadata: Mapping[str, Any] = schema.get("metadata", {})
        kept = {name: metadata[name] for name in _HOOKS if name in metadata}
        result = super().generate_inner({**schema, "metadata": kept})
        if not _is_opaque(schema) and not any(_is_custom(hook) for hooks in kept.values() for hook in hooks):
            return result
        if "ref" in schema:
            self.resolve_ref_schema(result).update(_HIDDEN)
        return {**result, **_HIDDEN}

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchema:
        return dict(_HIDDEN)

    def chain_schema(self, schema: Any) -> JsonSchema:
        is_one_type = all(step["type"].startswith("function-") for step in schema["steps"][1:])
        return super().chain_schema(schema) if is_one_type else dict(_HIDDEN)

    def dict_schema(self, schema: Any) -> JsonSchema:
        parts = {"propertyNames": "keys_schema", "additionalProperties": "values_schema"}
        return {key: self.generate_inner(schema[part]) if part in schema else {} for key, part in parts.items()}

    def _update_class_schema(self, json_schema: JsonSchema, *_: Any) -> None:
        return  # in particular, it does not apply `json_schema_extra`

    def _named_required_fields_schema(self, named_required_fields: Any) -> JsonSchema:
        result = super()._named_required_fields_schema(named_required_fields)
        for *_, one in named_required_fields:
            alias = one.get("validation_alias")
            for path in alias if isinstance(alias, list) and isinstance(alias[0], list) else [alias]:
                if isinstance(path, list) and len(path) > 1:
                    result["properties"][path[0]] = dict(_HIDDEN)
        return result


_HOOKS: Final = ("pydantic_js_functions", "pydantic_js_annotation_functions")


def _is_opaque(schema: Mapping[str, Any]) -> bool:
    """Whether a type is a secret of pydantic's, or accepts something other than its fields or items."""
    serializer = schema.get("serialization", {}).get("function")
    is_secret = getattr(serializer, "__name__", "").startswith("_serialize_secret")
    return is_secret or schema["type"] in ("json", "is-subclass") or "json_schema_input_schema" in schema


def _is_custom(hook: Any) -> bool:
    """Whether a hook that writes a JSON Schema comes from the author of a type."""
    owner = getattr(hook, "__self__", None)
    if isinstance(owner, WithJsonSchema):
        return True
    is_mark = owner is Sensitive or isinstance(owner, Sensitive)
    return not is_mark and str(getattr(hook, "__module__", None)).partition(".")[0] != "pydantic"
