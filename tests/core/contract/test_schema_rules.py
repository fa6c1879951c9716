"""The rules about schemas: each change in both directions, as an input and as an output."""

import time
from typing import Any, Final

import jsonschema_rs
import pytest

from axolotl_core.contract.changes import Impact, worst
from axolotl_core.contract.schema_compare import Side, compare_schemas
from tests.support.docs.tables import CONTRACT_RULES

Schema = dict[str, Any]

SIDES: Final[tuple[Side, Side]] = ("input", "output")
LETTERS: Final = {"B": Impact.BREAKING, "R": Impact.RISKY, "C": Impact.COMPATIBLE}
TEXT: Final[Schema] = {"type": "string"}
INT: Final[Schema] = {"type": "integer"}
NULL: Final[Schema] = {"type": "null"}
LIST: Final[Schema] = {"type": "array"}


def an_object(properties: Schema, *required: str, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": [*required], **more}


def closed(properties: Schema, *required: str) -> Schema:
    return an_object(properties, *required, additionalProperties=False)


def value(schema: Any) -> Schema:
    """Give the schema of an object with one value."""
    return an_object({"v": schema})


def text(**keywords: Any) -> Schema:
    return value({"type": "string", **keywords})


def integer(**keywords: Any) -> Schema:
    return value({"type": "integer", **keywords})


def node(**keywords: Any) -> Schema:
    """Give the schema of a tree whose nodes have a value."""
    tree = an_object({"v": {**TEXT, **keywords}, "next": {"$ref": "#/$defs/Node"}})
    return an_object({"tree": {"$ref": "#/$defs/Node"}}, **{"$defs": {"Node": tree}})


def defined(name: str) -> Schema:
    return an_object({"v": {"$ref": f"#/$defs/{name}"}}, **{"$defs": {name: {"type": "string", "minLength": 2}}})


def many_references(count: int) -> Schema:
    """Give a schema that is very large with its references inlined."""
    inner = an_object({f"q{number}": {"$ref": "#/$defs/Leaf"} for number in range(count)})
    definitions = {"Part": inner, "Leaf": {**INT, "minimum": 1}}
    return an_object({f"p{number}": {"$ref": "#/$defs/Part"} for number in range(count)}, **{"$defs": definitions})


SEVERAL: Final = {"anyOf": [TEXT, INT]}
ONE_OF: Final = {"oneOf": [TEXT, INT]}
BOUNDS: Final = {
    "minimum": (integer(minimum=1), integer(minimum=2)),
    "maximum": (integer(maximum=9), integer(maximum=8)),
    "exclusiveMinimum": (value({"type": "number"}), value({"type": "number", "exclusiveMinimum": 1})),
    "exclusiveMaximum": (value({"type": "number", "maximum": 1}), value({"type": "number", "exclusiveMaximum": 1})),
    "minLength": (text(minLength=1), text(minLength=2)),
    "maxLength": (text(), text(maxLength=5)),
    "minItems": (value(LIST), value({**LIST, "minItems": 1})),
    "maxItems": (value({**LIST, "maxItems": 5}), value({**LIST, "maxItems": 4})),
    "minProperties": (value({"type": "object"}), value({"type": "object", "minProperties": 1})),
    "maxProperties": (value({"type": "object", "maxProperties": 3}), value({"type": "object", "maxProperties": 2})),
}

# A row has a change, its classes as an input and as an output, and those of the change back.
TABLE: Final[list[tuple[str, Schema, Schema, str, str]]] = [
    ("optional, closed", closed({}), closed({"a": TEXT}), "CB", "BR"),
    ("optional, open", an_object({}), an_object({"a": TEXT}), "BC", "BB"),
    ("required, closed", closed({}), closed({"a": TEXT}, "a"), "BB", "BB"),
    ("required, open", an_object({}), an_object({"a": TEXT}, "a"), "BC", "BB"),
    ("required now", closed({"a": TEXT}), closed({"a": TEXT}, "a"), "BC", "CB"),
    ("closed now", an_object({"a": TEXT}), closed({"a": TEXT}), "BC", "CB"),
    ("number", integer(), value({"type": "number"}), "CB", "BC"),
    ("other type", integer(), text(), "BB", "BB"),
    ("null in anyOf", integer(), value({"anyOf": [INT, NULL]}), "CB", "BC"),
    ("null in type", integer(), value({"type": ["integer", "null"]}), "CB", "BC"),
    ("enum grows", value({"enum": ["a"]}), value({"enum": ["a", "b"]}), "CB", "BC"),
    ("enum dropped", value({"enum": ["a", "b"]}), text(), "CB", "BC"),
    ("const to enum", value({"const": "a"}), value({"enum": ["a", "b"]}), "CB", "BC"),
    ("enum changes", value({"enum": ["a"]}), value({"enum": ["b"]}), "BB", "BB"),
    *[
        (name, wide, tight, "BC", "CB") for name, (wide, tight) in BOUNDS.items()
    ],
    ("multipleOf", integer(multipleOf=2), integer(multipleOf=4), "BC", "CB"),
    ("multipleOf 2, 3", integer(multipleOf=2), integer(multipleOf=3), "BB", "BB"),
    ("pattern", text(), text(pattern="^a"), "BC", "CB"),
    ("patterns", text(pattern="(?!x)a"), text(pattern="(?!y)a"), "RR", "RR"),
    ("simple patterns", text(pattern="^a"), text(pattern="^b"), "BB", "BB"),
    ("format", text(), text(format="email"), "BC", "CB"),
    ("formats", text(format="date"), text(format="email"), "BB", "BB"),
    ("own format", text(), text(format="zip-code"), "RC", "CR"),
    ("own formats", text(format="zip-code"), text(format="iban"), "RR", "RR"),
    ("anyOf", value(SEVERAL), value({"anyOf": [TEXT, INT, LIST]}), "CB", "BC"),
    ("oneOf", value(ONE_OF), value({"oneOf": [TEXT, INT, LIST]}), "CB", "BC"),
    ("overlapping oneOf", value(ONE_OF), value({"oneOf": [TEXT, INT, {"type": "number", "minimum": 3}]}), "BB", "BB"),
    ("definition", node(), node(minLength=1), "BR", "RB"),
    ("recursive pattern", node(pattern="a.*b"), node(pattern="b.*a"), "BB", "BB"),
    ("not", text(), text(**{"not": {"const": "x"}}), "BC", "CB"),
    ("not changes", text(**{"not": {"const": "x"}}), text(**{"not": {"const": "y"}}), "BB", "BB"),
    ("if", integer(), integer(**{"if": {"minimum": 3}, "then": {"maximum": 9}}), "BC", "CB"),
    ("dependentRequired", an_object({"a": INT, "b": INT}),
     an_object({"a": INT, "b": INT}, dependentRequired={"a": ["b"]}), "BC", "CB"),
    ("contains", value(LIST), value({**LIST, "contains": INT}), "BC", "CB"),
    ("uniqueItems", value(LIST), value({**LIST, "uniqueItems": True}), "BC", "CB"),
    ("unevaluated", an_object({"a": INT}), an_object({"a": INT}, unevaluatedProperties=False), "BC", "CB"),
    ("not constrained", value({}), text(), "BC", "CB"),
    ("items", value({**LIST, "items": INT}), value({**LIST, "items": {**INT, "minimum": 3}}), "BC", "CB"),
    ("prefixItems", value({**LIST, "prefixItems": [INT]}), value({**LIST, "prefixItems": [TEXT]}), "BB", "BB"),
    ("header", text(), text(**{"x-mcp-header": "Tenant"}), "BC", "BC"),
    ("default", text(default="a"), text(default="b"), "RR", "RR"),
    ("description", text(), text(description="A text."), "RR", "RR"),
    ("title", text(title="Old"), text(title="New"), "RR", "RR"),
    ("examples", text(), text(examples=["a"]), "RR", "RR"),
    ("unknown keyword", text(), text(**{"x-order": 1}), "RR", "RR"),
    ("deprecated", text(), text(deprecated=True), "CC", "CC"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "classes"),
    [
        pytest.param(*row, id=f"{name}{suffix}")
        for name, old, new, classes, classes_back in TABLE
        for suffix, row in (("", (old, new, classes)), (" back", (new, old, classes_back)))
    ],
)
def test_a_change_has_a_class_in_each_direction(old: Schema, new: Schema, classes: str) -> None:
    """The worst class of all differences is that of the table."""
    for side, letter in zip(SIDES, classes, strict=True):
        found = compare_schemas(old, new, side)
        assert worst([one.impact for one in found]) is LETTERS[letter], found
        assert found
        assert all(one.rule in CONTRACT_RULES for one in found)
        assert all(one.impact is Impact.RISKY for one in found if one.undecided)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(text(minLength=2), defined("Name"), id="reference"),
        pytest.param(defined("Name"), defined("Label"), id="renamed definition"),
        pytest.param(value({"anyOf": [INT, NULL]}), value({"type": ["null", "integer"]}), id="types"),
        pytest.param(value({"const": 1}), value({"enum": [1.0]}), id="const"),
        pytest.param(an_object({"a": INT, "b": INT}, "a", "b"), an_object({"b": INT, "a": INT}, "b", "a"), id="order"),
        pytest.param(an_object({}), an_object({}, additionalProperties=True), id="open"),
        pytest.param(integer(exclusiveMinimum=0), integer(minimum=1), id="bounds of integers"),
        pytest.param(integer(**{"$comment": "old"}), integer(**{"$comment": "new"}), id="comment"),
    ],
)
def test_another_spelling_is_no_change(old: Schema, new: Schema) -> None:
    """Schemas that differ in their spelling only are equal for callers."""
    for before, after in ((old, new), (new, old)):
        assert compare_schemas(before, after, "input") == compare_schemas(before, after, "output") == []


def test_a_change_that_no_rule_explains() -> None:
    """If the proof finds refused values where the walk finds none, the change is breaking."""
    old = an_object({"a": INT}, definitions={"N": INT}, allOf=[{"properties": {"b": {"$ref": "#/definitions/N"}}}])
    new = {**old, "definitions": {"N": {"type": "integer", "minimum": 3}}}
    assert worst([one.impact for one in compare_schemas(old, new, "input")]) is Impact.BREAKING
    assert worst([one.impact for one in compare_schemas(new, old, "input")]) is Impact.COMPATIBLE


@pytest.mark.parametrize(
    "new",
    [
        {"properties": {"a": {**INT, "description": "Old."}}},
        {"properties": {"a": {"type": "number", "description": "New."}, "b": TEXT}},
    ],
    ids=["removed", "described"],
)
def test_changes_behind_other_keywords(new: Schema) -> None:
    """Arguments that disappear from an open object, and changed texts, are risky although all values stay valid."""
    old = {"properties": {"a": {**INT, "description": "Old."}, "b": TEXT}}
    found = compare_schemas(
        an_object({}, dependentSchemas={"x": old}), an_object({}, dependentSchemas={"x": new}), "input"
    )
    impacts = {one.rule: one.impact for one in found}
    assert impacts == {"values-changed": Impact.COMPATIBLE, "text-changed": Impact.RISKY}


def test_evidence_shows_the_refused_values() -> None:
    """A breaking change comes with a schema of the values for which callers cannot go on."""
    [found] = compare_schemas(integer(minimum=0), integer(minimum=1), "input")
    assert found.pointer == "/properties/v"
    assert found.evidence == {"const": 0}


def test_a_breaking_change_stays_breaking_beside_others() -> None:
    """Compatible and risky changes do not hide a breaking one."""
    old = closed({"a": TEXT, "b": INT})
    new = closed({"a": {**TEXT, "description": "new"}, "c": INT, "b": {"type": "number"}}, "a")
    impacts = {(one.rule, one.pointer): one.impact for one in compare_schemas(old, new, "input")}
    assert impacts == {
        ("values-changed", ""): Impact.BREAKING,
        ("text-changed", "/properties/a/description"): Impact.RISKY,
        ("property-added", "/properties/c"): Impact.COMPATIBLE,
        ("values-changed", "/properties/b"): Impact.COMPATIBLE,
    }


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(value({"type": "nothing"}), id="invalid"),
        pytest.param(value({"$ref": "https://example.com/schema"}), id="external"),
        pytest.param({**text(), "$schema": "http://json-schema.org/draft-07/schema#"}, id="dialect"),
        pytest.param(many_references(120), id="too large"),
    ],
)
def test_what_cannot_be_compared_is_never_compatible(new: Schema) -> None:
    """Invalid and foreign schemas are risky and undecided, in the worst case breaking."""
    for side in SIDES:
        found = compare_schemas(text(minLength=1), new, side)
        assert worst([one.impact for one in found]) is not Impact.COMPATIBLE


def test_very_many_values_are_undecided() -> None:
    """A proof about tens of thousands of listed values would take minutes, so none is tried."""
    few, many = value({"enum": [*range(20_000)]}), value({"enum": [*range(20_001)]})
    began = time.process_time()
    assert all(one.undecided for one in compare_schemas(few, many, "input"))
    assert time.process_time() - began < 20


def test_a_failing_proof_is_not_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of the library that proves containment counts as undecided."""

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(jsonschema_rs, "canonicalize", fail)
    for side in SIDES:
        [found] = compare_schemas(integer(), value({"type": "number"}), side)
        assert (found.impact, found.undecided) == (Impact.RISKY, True)
