"""Laws of the comparison of schemas, checked with random schemas and another validator."""

import copy
from collections import Counter
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, assume, example, given, note, settings
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from axolotl_core.contract.changes import Impact, worst
from axolotl_core.contract.schema_compare import SchemaChange, Side, compare_schemas
from tests.support.core.schemas import arguments, candidates, pairs

PAIRS: Final = 4 * settings().max_examples
MIN_STRICT_SHARE: Final = 0.1
"""How many of the compatible pairs must differ in some value; pairs without a difference prove nothing."""
SIDES: Final[tuple[Side, Side]] = ("input", "output")
OPPOSITE: Final[dict[Side, Side]] = {"input": "output", "output": "input"}

Schema = dict[str, Any]
counts: Counter[str] = Counter()


def impact_of(found: list[SchemaChange]) -> Impact:
    return worst([one.impact for one in found])


def validator(schema: Schema) -> Any:
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


@pytest.mark.slow
@settings(max_examples=PAIRS, suppress_health_check=list(HealthCheck))
@given(pairs())
def test_compatible_hides_no_change_that_a_validator_notices(pair: tuple[Schema, Schema]) -> None:
    """If a change is compatible, no value is accepted on the side that must be contained and refused on the other."""
    old, new = pair
    impacts = {side: impact_of(compare_schemas(old, new, side)) for side in SIDES}
    if Impact.COMPATIBLE not in impacts.values():
        return
    before, after = validator(old), validator(new)
    is_strict = False
    for value in candidates(old, new):
        was_valid, is_valid = before.is_valid(value), after.is_valid(value)
        is_strict = is_strict or was_valid != is_valid
        note(f"{value}: {was_valid} → {is_valid}")
        assert not (impacts["input"] is Impact.COMPATIBLE and was_valid and not is_valid)
        assert not (impacts["output"] is Impact.COMPATIBLE and is_valid and not was_valid)
    counts["compatible"] += 1
    counts["strict"] += is_strict


@pytest.mark.slow
def test_many_compatible_pairs_differ(record_property: Any) -> None:
    """The test above compares schemas that allow different values, in a sufficient share of compatible pairs."""
    if not counts["compatible"]:
        pytest.skip("it counts what the test above compared")
    share = counts["strict"] / counts["compatible"]
    record_property("share of compatible pairs that differ in a value", round(share, 3))
    print(f"{share:.0%} of {counts['compatible']} compatible pairs differ in a value")
    assert share > MIN_STRICT_SHARE


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(arguments())
def test_a_schema_equals_itself(schema: Schema) -> None:
    """Nothing changes between a schema and a copy with its keys in another order."""
    reordered = {key: copy.deepcopy(schema[key]) for key in reversed(schema)}
    assert compare_schemas(schema, reordered, "input") == compare_schemas(schema, reordered, "output") == []


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@example(
    (
        {"type": "object", "properties": {"b": {"not": {"properties": {"a": {"type": "string"}}}}}},
        {"type": "object", "properties": {"b": {}}},
    )
)
@given(pairs())
def test_swapped_schemas_swap_the_directions(pair: tuple[Schema, Schema]) -> None:
    """An input that accepts more is an output that contains less, read backwards: both are broken by the same values.

    What callers notice although all values stay valid has a direction of its own, so only breaking values are compared.
    """
    old, new = pair
    for side in SIDES:
        there = compare_schemas(old, new, side)
        back = compare_schemas(new, old, OPPOSITE[side])
        if all(one.rule == "values-changed" for one in (*there, *back)):
            assert impact_of(there) is impact_of(back)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(pairs())
def test_a_breaking_change_stays_breaking(pair: tuple[Schema, Schema]) -> None:
    """A required argument is a breaking change beside any other change."""
    old, new = copy.deepcopy(pair)
    assume("unevaluatedProperties" not in repr(pair))  # it makes the walk uncertain, so that only the proof can say so
    new["properties"] = {**new.get("properties", {}), "extra": {"type": "string"}}
    new["required"] = [*new.get("required", ()), "extra"]
    assert impact_of(compare_schemas(old, new, "input")) is Impact.BREAKING
