"""The normal form of a JSON Schema, in which schemas that differ only in their spelling are equal."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final, TypeAlias

from axolotl_core.protocol.wire import encode_sorted
from axolotl_core.schema import JsonSchema, inlined

Node: TypeAlias = Any
"""A schema: a boolean or an object."""

DEFINITION_PREFIX: Final = "#/$defs/"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_OF_STRINGS: Final = frozenset({"minLength", "maxLength", "pattern", "format"})
_OF_NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"})
_RANGE: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_OF_ARRAYS: Final = frozenset(
    {
        "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
        "unevaluatedItems",
    }
)  # fmt: skip
_OF_OBJECTS: Final = frozenset(
    {
        "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
        "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
    }
)  # fmt: skip
_BY_TYPE: Final = {
    "string": _OF_STRINGS,
    "integer": _OF_NUMBERS,
    "number": _OF_NUMBERS,
    "array": _OF_ARRAYS,
    "object": _OF_OBJECTS,
    "boolean": frozenset({"format"}),
    "null": frozenset({"format"}),
}
_OF_SOME_TYPE: Final = frozenset().union(*_BY_TYPE.values())
_COMBINATIONS: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
_REFERENCES: Final = frozenset(
    {"$ref", "$defs", "definitions", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef",
     "$recursiveAnchor"}
)  # fmt: skip
_ADDRESSES: Final = _REFERENCES - {"$ref", "$defs", "definitions"}
_OLD_KEYWORDS: Final = frozenset({"additionalItems", "dependencies"})
STRUCTURE: Final = _OF_SOME_TYPE | _COMBINATIONS | _REFERENCES | _OLD_KEYWORDS | {"type", "enum", "const"}
"""The keywords on which the validity of a value can depend. All others are annotations."""

_MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE: Final = frozenset(
    {
        "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
        "not", "if", "then", "else",
    }
)  # fmt: skip
_EMPTY: Final = {
    "minLength": 0, "minItems": 0, "minProperties": 0, "uniqueItems": False, "required": [], "properties": {},
    "patternProperties": {}, "dependentRequired": {}, "dependentSchemas": {}, "allOf": [], "prefixItems": [],
}  # fmt: skip
"""Values with which a keyword has no effect."""
_EVERYTHING: Final = ("items", "additionalProperties", "propertyNames")
"""Keywords that have no effect if their schema accepts everything."""


def normal_form(schema: JsonSchema) -> JsonSchema:
    """Inline references that are not recursive, rename definitions by their first use, and unify spellings.

    Annotations stay where they are. The schema must be plain and must not use `unevaluated…`.

    Raises:
        ValueError: if the schema becomes too large because of its references.
    """
    renamed = _with_renamed_definitions(inlined(schema))
    definitions = renamed.pop("$defs", {})
    result: JsonSchema = _node(renamed)
    if definitions:
        result["$defs"] = {name: _node(definition) for name, definition in definitions.items()}
    return result


def is_plain(schema: JsonSchema) -> bool:
    """Whether a schema is written in the current dialect and refers only to its definitions."""
    definitions = schema.get("$defs", {})
    return schema.get("$schema", DIALECT).rstrip("#") == DIALECT and all(
        not node.keys() & _ADDRESSES and _is_plain_reference(node.get("$ref"), definitions) for node in _nodes(schema)
    )


def uses_unevaluated(schema: JsonSchema) -> bool:
    """Whether a schema has keywords that depend on what other keywords elsewhere have evaluated."""
    return any("unevaluatedItems" in node or "unevaluatedProperties" in node for node in _nodes(schema))


def _is_plain_reference(reference: Any, definitions: Mapping[str, Any]) -> bool:
    return reference in (None, "#") or (
        isinstance(reference, str)
        and reference.startswith(DEFINITION_PREFIX)
        and reference.removeprefix(DEFINITION_PREFIX) in definitions
        and "/" not in reference.removeprefix(DEFINITION_PREFIX)
    )


def _nodes(schema: Node) -> Iterator[Mapping[str, Any]]:
    """Find all schemas in a schema that are objects."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            for key, value in node.items():
                _mapped(key, value, waiting.append)


def references_in(schema: Node) -> Iterator[str]:
    """Find all references in a schema."""
    for node in _nodes(schema):
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(reference := node.get(key), str):
                yield reference


def property_names(schema: Node) -> set[str]:
    """Return the names of all properties in a schema, at any depth."""
    return {name for node in _nodes(schema) for name in node.get("properties", ())}


def count_values(schema: Node) -> int:
    """Count the values that a schema lists, at any depth."""
    return sum(len(node["enum"]) for node in _nodes(schema) if isinstance(node.get("enum"), list))


def annotations_in(schema: Node) -> list[bytes]:
    """Return all annotations in a schema, at any depth, in a stable order."""
    nodes = _nodes(schema)
    return sorted(sort_key([key, value]) for node in nodes for key, value in node.items() if key not in STRUCTURE)


def constraints(node: Node) -> dict[str, Any]:
    """Return the keywords of a schema that decide which values are valid; a schema that refuses all has `not`."""
    if isinstance(node, dict):
        return {key: value for key, value in node.items() if key in STRUCTURE}
    return {} if node else {"not": True}


def structure(node: Node) -> Node:
    """Drop the annotations from a schema, at all depths."""
    parts = {key: _mapped(key, value, structure) for key, value in constraints(node).items()}
    return {key: value for key, value in parts.items() if key not in _EVERYTHING or value != {}}


def sort_key(value: Any) -> bytes:
    """Return a key by which equal JSON values are equal, whether a number is written as 1 or as 1.0."""
    return encode_sorted(_plain_numbers(value))


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    return value


def type_of(value: Any) -> str:
    """Return the type of a JSON value, `integer` for numbers without a fraction."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "integer" if value == int(value) else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _mapped(key: str, value: Any, change: Any) -> Any:
    """Change the schemas in the value of a keyword."""
    if key in _MAPS and isinstance(value, dict):
        return {name: change(child) for name, child in value.items()}
    if key in _LISTS and isinstance(value, list):
        return [change(child) for child in value]
    if key in _SINGLE and isinstance(value, (bool, dict)):
        return change(value)
    return value


def _with_renamed_definitions(schema: JsonSchema) -> JsonSchema:
    """Name the definitions, which are those of recursive types, by the order of their first use."""
    definitions = schema.get("$defs")
    if not isinstance(definitions, dict):
        return dict(schema)
    names: dict[str, str] = {}
    waiting: list[Any] = [{key: value for key, value in schema.items() if key != "$defs"}]
    while waiting:
        for name in _references(waiting.pop()):
            if name in definitions and name not in names:
                names[name] = f"d{len(names)}"
                waiting.append(definitions[name])

    def rename(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        changed = {key: _mapped(key, value, rename) for key, value in node.items()}
        reference = changed.get("$ref")
        if isinstance(reference, str) and (name := names.get(reference.removeprefix(DEFINITION_PREFIX))) is not None:
            changed["$ref"] = DEFINITION_PREFIX + name
        return changed

    result: JsonSchema = rename({key: value for key, value in schema.items() if key != "$defs"})
    kept = {new: rename(definitions[old]) for old, new in names.items()}
    return {**result, "$defs": kept} if kept else result


def _references(node: Any) -> Iterator[str]:
    """Find the names of definitions in the order of their use; keys are sorted, because their order means nothing."""
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith(DEFINITION_PREFIX):
            yield reference.removeprefix(DEFINITION_PREFIX)
        for key in sorted(node):
            yield from _references(node[key])
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _node(node: Node) -> Node:
    if not isinstance(node, dict):
        return node
    result = {key: _mapped(key, value, _node) for key, value in node.items()}
    if "const" in result:
        result = _with_const(result)
    for key, empty in _EMPTY.items():
        if key in result and result[key] == empty and type(result[key]) is type(empty):
            del result[key]
    for key in _EVERYTHING:
        if result.get(key) in (True, {}):
            del result[key]
    for key in ("required", "enum"):
        if isinstance(result.get(key), list):
            result[key] = _unique(result[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if isinstance(result.get(key), list):
            result = _with_branches(result, key)
    return _by_type(result)


def _with_const(node: JsonSchema) -> JsonSchema:
    value = node["const"]
    allowed = node.get("enum", [value])
    rest = {key: other for key, other in node.items() if key != "const"}
    return {**rest, "enum": [value] if sort_key(value) in map(sort_key, allowed) else []}


def _unique(values: list[Any]) -> list[Any]:
    return [value for _, value in sorted({sort_key(value): value for value in values}.items())]


def _with_branches(node: JsonSchema, key: str) -> JsonSchema:
    """Sort alternatives, flatten nested ones of the same kind, and replace a single one by itself."""
    rest = {other: value for other, value in node.items() if other != key}
    flat: list[Node] = []
    for branch in node[key]:
        nested = key != "oneOf" and isinstance(branch, dict) and branch.keys() == {key}
        flat.extend(branch[key] if nested else [branch])
    if key == "oneOf":
        flat.sort(key=_structure_key)  # two equal alternatives refuse what they accept
    else:
        flat = [branch for _, branch in sorted({_structure_key(branch): branch for branch in flat}.items())]
    if len(flat) == 1 and not constraints(rest):
        [only] = flat
        return {**only, **rest} if isinstance(only, dict) else {**rest, **constraints(only)}
    return {**rest, key: flat}


def _structure_key(node: Node) -> bytes:
    return sort_key(structure(node))


def _by_type(node: JsonSchema) -> JsonSchema:
    """Give each schema with types one type, if necessary as alternatives, and drop keywords of other types."""
    types = _types(node)
    if types is None:
        return node
    outer = {key: value for key, value in node.items() if key not in STRUCTURE}
    inner = {key: value for key, value in node.items() if key in STRUCTURE}
    if len(types) == 1:
        return {**outer, **_typed(inner, types[0])}
    if not types or inner.keys() & (_COMBINATIONS | _REFERENCES):
        return node
    return {**outer, "anyOf": sorted((_typed(inner, one) for one in types), key=_structure_key)}


def _types(node: JsonSchema) -> list[str] | None:
    """Return the types of a schema; None if it allows all."""
    declared = node.get("type")
    types = {declared} if isinstance(declared, str) else set(declared) if isinstance(declared, list) else None
    if types is not None and not types <= _BY_TYPE.keys():
        return None
    if isinstance(node.get("enum"), list):
        of_values = {type_of(value) for value in node["enum"]}
        if types is not None:
            of_values = {one for one in of_values if one in types or (one == "integer" and "number" in types)}
        types = of_values
    if types is None:
        return None
    return sorted(types - {"integer"} if "number" in types else types)


def _typed(node: JsonSchema, kind: str) -> JsonSchema:
    ignored = _OF_SOME_TYPE - _BY_TYPE[kind]
    result = {key: value for key, value in node.items() if key not in ignored}
    result["type"] = kind
    if "enum" in result:
        kinds = ("number", "integer") if kind == "number" else (kind,)
        result["enum"] = [value for value in result["enum"] if type_of(value) in kinds]
    return _with_whole_bounds(result) if kind == "integer" else result


def _with_whole_bounds(node: JsonSchema) -> JsonSchema:
    """Write the bounds of an integer as inclusive integers."""
    if not node.keys() & _OF_NUMBERS:
        return node
    lower, upper = bounds(node)
    result = {key: value for key, value in node.items() if key not in _RANGE}
    if lower is not None:
        result["minimum"] = floor(lower[0]) + 1 if lower[1] else ceil(lower[0])
    if upper is not None:
        result["maximum"] = ceil(upper[0]) - 1 if upper[1] else floor(upper[0])
    if result.get("multipleOf") == 1:
        del result["multipleOf"]
    return result


Bound: TypeAlias = tuple[int | Fraction, bool]
"""A number, and whether it is excluded."""


def bounds(node: Mapping[str, Any]) -> tuple[Bound | None, Bound | None]:
    """Return the effective lower and upper bound of a number."""
    lower, upper = _bounds(node, "minimum", "exclusiveMinimum"), _bounds(node, "maximum", "exclusiveMaximum")
    return max(lower, default=None), min(upper, key=lambda one: (one[0], not one[1]), default=None)


def _bounds(node: Mapping[str, Any], inclusive: str, exclusive: str) -> list[Bound]:
    return [(exact(node[key]), key == exclusive) for key in (inclusive, exclusive) if _is_number(node.get(key))]


def exact(number: float) -> int | Fraction:
    """Return a number as it is written in decimal."""
    return number if type(number) is int else Fraction(repr(number))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
