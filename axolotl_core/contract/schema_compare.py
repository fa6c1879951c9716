"""The comparison of two JSON Schemas: a walk finds the places of changes, and a proof decides what each means."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from axolotl_core.contract.changes import Impact, worst
from axolotl_core.protocol.wire import encode_sorted
from axolotl_core.schema import JsonSchema, inlined, subschemas

if TYPE_CHECKING:
    from jsonschema_rs import CanonicalSchema

Side: TypeAlias = Literal["input", "output"]
"""Which values a schema describes: those that callers send, or those that they receive."""

_MAX_BYTES: Final = 200_000
_MAX_VALUES: Final = 3000
"""How many listed values a proof may be about: the time that it takes grows with their square, to 2 s."""
_MAX_SHOWN: Final = 40
_VALIDATION: Final = frozenset(
    {
        "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
        "minLength", "maxLength", "pattern", "format", "items", "prefixItems", "minItems", "maxItems",
        "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems", "properties", "required",
        "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties",
        "dependentRequired", "dependentSchemas", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "not",
        "if", "then", "else", "$ref", "$defs", "definitions", "$id", "$anchor", "$dynamicRef",
        "$dynamicAnchor", "$schema", "additionalItems", "dependencies",
    }
)  # fmt: skip
"""The keywords on which the validity of a value can depend. All others are annotations."""

_NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const"})


class SchemaChange(NamedTuple):
    """A difference at one place of a schema, and what it means for callers."""

    impact: Impact
    rule: str
    pointer: str
    message: str
    old: Any = None
    new: Any = None
    evidence: Any = None
    undecided: bool = False


class _Proof(NamedTuple):
    """Whether one schema allows all values of another; if it does not, what that means, and the refused values."""

    impact: Impact
    undecided: bool = False
    refused: Any = None


def compare_schemas(old: JsonSchema, new: JsonSchema, side: Side) -> list[SchemaChange]:
    """Find what changed. Inputs may accept more, outputs may contain less; what cannot be decided is risky."""
    if encode_sorted(old) == encode_sorted(new):
        return []
    try:
        before, after = inlined(old), inlined(new)
        found = list(_Comparison(before.get("$defs", {}), after.get("$defs", {}), side).changes(before, after))
    except (ValueError, RecursionError):  # too large with its references inlined, or too deep
        before, after, found = old, new, []
    whole = [one for one in _Comparison({}, {}, side).values(before, after, "") if one.rule == "values-changed"]
    impact = worst([one.impact for one in found])
    if whole and whole[0].impact is not impact and worst([whole[0].impact, impact]) is whole[0].impact:
        found += whole
    return found


class _Comparison:
    """The comparison of two schemas, whose recursive types are in `$defs`."""

    def __init__(self, old_definitions: JsonSchema, new_definitions: JsonSchema, side: Side) -> None:
        self._definitions = old_definitions, new_definitions
        self._side = side

    def changes(self, old: JsonSchema, new: JsonSchema) -> Iterator[SchemaChange]:
        """Find the changes of a schema and of its recursive types."""
        before, after = self._definitions
        yield from self._walk({**old, "$defs": {}}, {**new, "$defs": {}}, "")
        for name in sorted(before.keys() & after.keys()):
            yield from self._walk(before[name], after[name], f"/$defs/{name}")

    def _walk(self, old: Any, new: Any, at: str) -> Iterator[SchemaChange]:
        if not (isinstance(old, dict) and isinstance(new, dict)):
            yield from self.values(old, new, at)
            return
        yield from self._annotations(old, new, at)
        if ("properties" in old) != ("properties" in new):
            old, new = {"properties": {}, **old}, {"properties": {}, **new}
        nested = {
            key for key in ("properties", "items") if isinstance(old.get(key), dict) and isinstance(new.get(key), dict)
        }
        rest = [{key: one[key] for key in one.keys() & _VALIDATION - nested} for one in (old, new)]
        if "properties" in nested:
            yield from self._properties(old, new, at)
            for one in rest:
                one["properties"] = dict.fromkeys(old["properties"].keys() & new["properties"].keys(), True)
        if "items" in nested:
            yield from self._walk(old["items"], new["items"], f"{at}/items")
        yield from self.values(rest[0], rest[1], at)

    def values(self, old: Any, new: Any, at: str) -> Iterator[SchemaChange]:
        """Compare the values that two schemas allow."""
        if encode_sorted([old]) == encode_sorted([new]):
            return
        must, may = self._roles(old, new)
        proof = _prove(must, may)
        if proof.impact is not Impact.COMPATIBLE or _prove(may, must).impact is not Impact.COMPATIBLE:
            fewer = "more" if self._side == "input" else "fewer"
            word = fewer if proof.impact is Impact.COMPATIBLE else "other"
            message = f"{word} values are allowed{_described(old, new)}"
            yield SchemaChange(proof.impact, "values-changed", at, message, old, new, proof.refused, proof.undecided)
        if proof.impact is Impact.COMPATIBLE and _noticed(old) != _noticed(new):
            message = f"properties or texts were changed{_described(old, new)}"
            yield SchemaChange(Impact.RISKY, "text-changed", at, message, old, new)

    def _properties(self, old: JsonSchema, new: JsonSchema, at: str) -> Iterator[SchemaChange]:
        before, after = old["properties"], new["properties"]
        for name in sorted(before.keys() | after.keys()):
            place = f"{at}/properties/{name.replace('~', '~0').replace('/', '~1')}"
            if name not in after:
                is_unused = self._side == "output" and new.get("additionalProperties") is False
                is_risky = is_unused and name not in old.get("required", ())
                impact = Impact.RISKY if is_risky else Impact.BREAKING
                yield SchemaChange(impact, "property-removed", place, f"{name} was removed", before[name])
            elif name not in before:
                proof = _prove(*self._roles(_only(old, name), _only(new, name)))
                what = "required" if name in new.get("required", ()) else "optional"
                noun = f"the {what} {'argument' if self._side == 'input' else 'property'} {name} was added"
                yield SchemaChange(
                    proof.impact, "property-added", place, noun, None, after[name], proof.refused, proof.undecided
                )
            else:
                yield from self._walk(before[name], after[name], place)

    def _annotations(self, old: JsonSchema, new: JsonSchema, at: str) -> Iterator[SchemaChange]:
        for key in sorted((old.keys() | new.keys()) - _VALIDATION - {"$comment"}):
            if old.get(key) != new.get(key):
                impact = Impact.COMPATIBLE if key == "deprecated" else Impact.RISKY
                if key == "x-mcp-header":
                    impact = Impact.BREAKING if self._side == "input" else Impact.COMPATIBLE
                message = f"{key} was changed"
                yield SchemaChange(impact, "text-changed", f"{at}/{key}", message, old.get(key), new.get(key))

    def _roles(self, old: Any, new: Any) -> tuple[Any, Any]:
        """Return the schema whose values callers have, and the one that must allow all of them."""
        first, second = (
            {**one, "$defs": definitions} if definitions and any("$ref" in node for node in subschemas(one)) else one
            for one, definitions in zip((old, new), self._definitions, strict=True)
        )
        return (first, second) if self._side == "input" else (second, first)


def _only(node: JsonSchema, name: str) -> JsonSchema:
    """Keep one property of an object."""
    own: JsonSchema = {key: node[key] for key in ("type", "additionalProperties") if key in node}
    properties = {name: node["properties"][name]} if name in node["properties"] else {}
    return {**own, "properties": properties, "required": [one for one in node.get("required", ()) if one == name]}


def _described(old: Any, new: Any) -> str:
    """Name the keywords that differ, with their values if they are short."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return ""

    def shown(schema: JsonSchema, key: str) -> str:
        text = encode_sorted(schema[key]).decode() if key in schema else "none"
        return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"

    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return ": " + ", ".join(f"{key} {shown(old, key)} → {shown(new, key)}" for key in keys) if keys else ""


def _noticed(schema: JsonSchema) -> list[bytes]:
    """Return what callers notice although all values stay valid: names of properties, and texts."""
    nodes = list(subschemas(schema))
    names = [encode_sorted(name) for node in nodes for name in node.get("properties", ())]
    kept = _VALIDATION | {"$comment", "deprecated"}
    return sorted(set(names)) + sorted(encode_sorted([key, node[key]]) for node in nodes for key in node.keys() - kept)


def _prove(must: Any, may: Any) -> _Proof:
    """Decide whether one schema allows all values of another."""
    from jsonschema_rs import canonical, canonicalize

    undecided = _Proof(Impact.RISKY, undecided=True)
    values = sum(len(node["enum"]) for node in subschemas([must, may]) if isinstance(node.get("enum"), list))
    if values > _MAX_VALUES or len(encode_sorted([must, may])) > _MAX_BYTES:
        return undecided
    try:
        wide, narrow = canonicalize(may, validate_formats=True), canonicalize(must, validate_formats=True)
        answer = wide.covers(narrow)
        if answer is canonical.Containment.YES:
            return _Proof(Impact.COMPATIBLE)
        if answer is canonical.Containment.NO:
            return _Proof(Impact.BREAKING, refused=_refused(narrow, wide))
        return next((_Proof(Impact.BREAKING, refused={"const": one}) for one in _witnesses(must, may)), undecided)
    except Exception:  # of a library that knows many keywords, and not all combinations of them
        return undecided


def _refused(narrow: "CanonicalSchema", wide: "CanonicalSchema") -> Any:
    """Describe the values for which callers cannot go on; None if they cannot be described."""
    try:
        evidence: Any = narrow.subtract(wide).to_json_schema()
    except Exception:  # as above
        return None
    return (
        {key: value for key, value in evidence.items() if key != "$schema"} if isinstance(evidence, dict) else evidence
    )


def _witnesses(must: Any, may: Any) -> Iterator[Any]:
    """Find values that one schema allows and the other does not, among those that schemas often tell apart."""
    from jsonschema_rs import validator_for

    allowed, refused = validator_for(must, validate_formats=True), validator_for(may, validate_formats=True)
    nodes = list(subschemas([must, may]))
    given = (
        value for node in nodes for key, value in node.items() if key in _NUMBERS and isinstance(value, int | float)
    )
    numbers = {number + step for number in (0, *given) for step in (-1, 0, 0.5, 1)}
    simple: list[Any] = [None, True, "", "a", "?" * 50, [], [None], {}, *sorted(numbers)]
    names = {name for node in nodes for name in node.get("properties", ())}
    for value in (*simple, *({name: one} for name in sorted({"", *names}) for one in simple)):
        if allowed.is_valid(value) and not refused.is_valid(value):
            yield value
