"""Strategies of JSON Schemas with mutations, and values near the limits of a schema."""

import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from hypothesis import strategies as st

NAMES: Final = ("a", "b", "c")
STRINGS: Final = ("", "a", "ab", "abc", "x1", "2026-11-17", "ann@example.com", "127.0.0.1")
FORMATS: Final = ("date", "email", "ipv4", "uuid", "zip-code")
PATTERNS: Final = ("^a", "b$", "^[a-c]*$", "1")
NUMBERS: Final = (-1, 0, 1, 1.5, 2, 3, 4)
_MAX_CANDIDATES: Final = 60

_small: Final = st.integers(0, 3)
_scalars: Final = st.sampled_from([*STRINGS[:5], *NUMBERS, True, False, None])


def _with(fixed: dict[str, Any], /, **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    members = {key: st.just(value) for key, value in fixed.items()}
    return st.fixed_dictionaries(members, optional=optional)


def _leaves() -> st.SearchStrategy[Any]:
    numbers = {
        "minimum": st.sampled_from(NUMBERS),
        "maximum": st.sampled_from(NUMBERS),
        "exclusiveMinimum": st.sampled_from(NUMBERS),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
    }
    return st.one_of(
        _with(
            {"type": "string"},
            minLength=_small,
            maxLength=_small,
            pattern=st.sampled_from(PATTERNS),
            format=st.sampled_from(FORMATS),
        ),
        _with({"type": "integer"}, **numbers),
        _with({"type": "number"}, **numbers),
        st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}, {}, True, False]),
        st.fixed_dictionaries({"enum": st.lists(_scalars, min_size=1, max_size=4)}),
        st.fixed_dictionaries({"const": _scalars}),
    )


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from(NAMES), unique=True, max_size=3)
    branches = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        _with(
            {"type": "object"},
            properties=st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
            required=names,
            additionalProperties=st.one_of(st.booleans(), inner),
            minProperties=_small,
            maxProperties=_small,
            dependentRequired=st.dictionaries(st.sampled_from(NAMES), names, max_size=1),
            patternProperties=st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=1),
            propertyNames=st.sampled_from([{"maxLength": 1}, {"enum": ["a", "b"]}]),
            unevaluatedProperties=st.just(False),
        ),
        _with(
            {"type": "array"},
            items=inner,
            prefixItems=st.lists(inner, min_size=1, max_size=2),
            minItems=_small,
            maxItems=_small,
            uniqueItems=st.booleans(),
            contains=inner,
            minContains=_small,
        ),
        st.fixed_dictionaries({"anyOf": branches}),
        st.fixed_dictionaries({"oneOf": branches}),
        st.fixed_dictionaries({"allOf": branches}),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner, "then": inner}, optional={"else": inner}),
    )


SCHEMAS: Final = st.recursive(_leaves(), _nested, max_leaves=6)
"""Schemas of one value."""


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the schema of a tool: an object, sometimes with definitions that may be recursive."""
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = draw(st.dictionaries(st.sampled_from(NAMES), SCHEMAS, min_size=1, max_size=3))
    schema["required"] = draw(st.lists(st.sampled_from(sorted(schema["properties"])), unique=True))
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    if draw(st.integers(0, 4)) == 0:
        definition = draw(SCHEMAS)
        if isinstance(definition, dict) and draw(st.booleans()):
            child = {"properties": {"b": {"$ref": "#/$defs/Part"}}}
            definition = {**definition, **child} if definition.get("type") == "object" else definition
        schema["$defs"] = {"Part": definition}
        schema["properties"][draw(st.sampled_from(NAMES))] = {"$ref": "#/$defs/Part"}
    return schema


@st.composite
def pairs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw two schemas; the second is a mutation of the first in four of five cases."""
    old = draw(arguments())
    if draw(st.integers(0, 4)) == 0:
        return old, draw(arguments())
    new = copy.deepcopy(old)
    for _ in range(draw(st.integers(1, 2))):
        _mutate(draw, new)
    return (old, new) if draw(st.booleans()) else (new, old)


def _one(draw: st.DrawFn) -> Any:
    """Draw a schema that can be changed; strategies return some of them many times."""
    return copy.deepcopy(draw(SCHEMAS))


def _mutate(draw: st.DrawFn, schema: dict[str, Any]) -> None:
    """Change one keyword somewhere in a schema."""
    node = draw(st.sampled_from(list(_objects(schema))))
    if node.get("type") == "object" and draw(st.booleans()):
        _mutate_object(draw, node, is_root=node is schema)
        return
    keys = sorted(node.keys() - {"$defs", "$ref"} - ({"type"} if node is schema else set()))
    key = draw(st.sampled_from(keys)) if keys else None
    value: Any = node.get(key) if key is not None else None
    if key is None or draw(st.integers(0, 3)) == 0:
        if node is not schema:
            other = _one(draw)
            node.update(other if isinstance(other, dict) else {})
    elif isinstance(value, bool) or draw(st.integers(0, 3)) == 0:
        del node[key]
    elif isinstance(value, int | float):
        node[key] = max(0.5 if key == "multipleOf" else 0, value + draw(st.sampled_from([-1, 1])))
    elif key == "enum":
        value.append(draw(_scalars)) if draw(st.booleans()) or len(value) == 1 else value.pop()
    elif key == "type":
        node[key] = draw(st.sampled_from(["string", "integer", "number", ["integer", "null"], ["string", "null"]]))
    elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        value.append(_one(draw)) if draw(st.booleans()) or len(value) == 1 else value.pop()
    elif key in ("pattern", "format"):
        node[key] = draw(st.sampled_from(PATTERNS if key == "pattern" else FORMATS))


def _mutate_object(draw: st.DrawFn, node: dict[str, Any], *, is_root: bool) -> None:
    properties = node.setdefault("properties", {})
    name = draw(st.sampled_from(NAMES))
    match draw(st.sampled_from(["property", "required", "closed"])):
        case "property" if name in properties and not (is_root and len(properties) == 1):
            del properties[name]
        case "property":
            properties[name] = _one(draw)
        case "required":
            names = set(node.get("required", ())) ^ {name}
            node["required"] = sorted(names)
        case "closed":
            node["additionalProperties"] = node.get("additionalProperties", True) is not True


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Find all schemas with keywords."""
    if isinstance(value, dict):
        yield value
        for key, child in value.items():
            if key in ("properties", "patternProperties", "$defs"):
                for one in child.values():
                    yield from _objects(one)
            elif key not in ("dependentRequired", "const", "enum"):
                yield from _objects(child)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)


def candidates(*schemas: dict[str, Any]) -> list[Any]:
    """Make values that are near the limits of some schemas of objects."""
    found: dict[str, Any] = {}
    for schema in schemas:
        for value in islice(_values(schema, schema, 4), _MAX_CANDIDATES):
            found.setdefault(repr(value), value)
    return list(found.values())


def _values(schema: Any, root: dict[str, Any], depth: int) -> Iterator[Any]:
    if not isinstance(schema, dict) or depth == 0:
        yield from (0, "a", None)
        return
    if "$ref" in schema:
        yield from _values(root["$defs"]["Part"], root, depth - 1)
    for key in ("const", "enum"):
        if key in schema:
            yield from schema[key] if key == "enum" else [schema[key]]
    for key in ("anyOf", "oneOf", "allOf"):
        for branch in schema.get(key, ()):
            yield from islice(_values(branch, root, depth - 1), 8)
    for key in ("not", "if", "then", "else"):
        if key in schema:
            yield from islice(_values(schema[key], root, depth - 1), 8)
    kinds = schema.get("type", ("string", "integer", "null"))
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        yield from _of_type(kind, schema, root, depth)


def _of_type(kind: str, schema: dict[str, Any], root: dict[str, Any], depth: int) -> Iterator[Any]:
    if kind in ("integer", "number"):
        limits = [schema[key] for key in ("minimum", "maximum", "exclusiveMinimum", "multipleOf") if key in schema]
        yield from (number + step for number in limits or [0] for step in (0, 1, -1, 0.5, -0.5))
    elif kind == "string":
        lengths = [schema[key] for key in ("minLength", "maxLength") if key in schema]
        yield from ("a" * max(0, length + step) for length in lengths for step in (0, 1, -1))
        yield from STRINGS
    elif kind == "boolean":
        yield from (True, False)
    elif kind == "null":
        yield None
    elif kind == "array":
        yield from _arrays(schema, root, depth)
    elif kind == "object":
        yield from _instances(schema, root, depth)
    yield "a" if kind != "string" else 0


def _arrays(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Iterator[Any]:
    yield []
    parts = [*schema.get("prefixItems", ()), schema.get("items", {}), schema.get("contains", {})]
    choices = [list(islice(_values(part, root, depth - 1), 4)) or [0] for part in parts]
    yield from ([choice[0] for choice in choices[:length]] for length in range(1, len(choices) + 1))
    yield from ([value] * length for choice in choices for value in choice for length in (1, 2, 3))


def _instances(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Iterator[Any]:
    """Make objects: with all properties, without each of them, with one more, and with each value of each property."""
    properties = schema.get("properties", {})
    names = sorted({*properties, *schema.get("required", ())})
    choices = {name: list(islice(_values(properties.get(name, {}), root, depth - 1), 12)) or [0] for name in names}
    usual = {name: choice[0] for name, choice in choices.items()}
    yield usual
    yield {}
    for name, choice in choices.items():
        yield {other: value for other, value in usual.items() if other != name}
        yield {name: choice[0]}
        yield from ({**usual, name: value} for value in choice[1:])
    for name in (*NAMES, "other"):
        if name not in usual:
            yield from ({**usual, name: value} for value in ("a", 0))
