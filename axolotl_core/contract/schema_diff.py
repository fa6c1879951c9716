"""The comparison of two JSON Schemas: a walk that finds differences, and a proof about all values."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from axolotl_core.contract.changes import Impact, worst
from axolotl_core.contract.keyword_diff import Difference, Effect
from axolotl_core.contract.normal_form import (
    count_values,
    is_plain,
    normal_form,
    property_names,
    structure,
    uses_unevaluated,
)
from axolotl_core.contract.schema_walk import Side, differences
from axolotl_core.protocol.wire import encode_sorted
from axolotl_core.schema import JsonSchema

if TYPE_CHECKING:
    from jsonschema_rs import CanonicalSchema

Proof: TypeAlias = Literal["yes", "no", "unknown"]
"""Whether callers can go on: all values that they send are accepted, or all that they receive were possible before."""

_MAX_VALUES: Final = 3000
"""How many listed values a proof may be about: the time that it takes grows with their square, to 2 s."""
_HARMFUL: Final = {"input": Effect.NARROWER, "output": Effect.WIDER}


class RatedDifference(NamedTuple):
    """A difference between schemas, and what it means for callers."""

    difference: Difference
    impact: Impact
    undecided: bool = False
    evidence: Any = None


def compare_schemas(old: JsonSchema, new: JsonSchema, side: Side) -> list[RatedDifference]:
    """Find and rate the differences between two versions of a schema.

    Inputs may accept more, outputs may contain less. The worst answer of the walk and the proof counts. What neither
    can decide is risky.
    """
    if encode_sorted(old) == encode_sorted(new):
        return []
    try:
        return _compare(old, new, side)
    except (RecursionError, ValueError) as error:
        return [_undecided(f"the schemas differ, but could not be compared: {error}", old, new)]


def _compare(old: JsonSchema, new: JsonSchema, side: Side) -> list[RatedDifference]:
    from jsonschema_rs import meta

    if not (meta.is_valid(old) and meta.is_valid(new)):
        return [_undecided("the schemas differ, and one of them is not valid", old, new)]
    plain = is_plain(old) and is_plain(new)
    normal = plain and not uses_unevaluated(old) and not uses_unevaluated(new)
    before, after = (normal_form(old), normal_form(new)) if normal else (old, new)
    found = differences(before, after, side, certain=normal)
    if structure(before) == structure(after):
        return [_rated(one, side, "yes") for one in found]
    harmful = [one for one in found if _is_harmful(one, side)]
    if harmful and all(one.certain for one in harmful):
        proof: Proof = "no"  # callers of these places cannot go on, whatever the proof says
    else:
        proof = _prove(old, new, side) if _can_prove(old, new) else "unknown"
    rated = [_rated(one, side, proof) for one in found]
    rated.extend(_unexplained(rated, found, proof, old, new))
    lost = property_names(old) - property_names(new)
    if lost and worst([one.impact for one in rated]) is Impact.COMPATIBLE:
        rated.append(_disappeared(lost))
    if not plain and worst([one.impact for one in rated]) is Impact.COMPATIBLE:
        rated.append(_undecided("the schemas differ, and have references that were not followed", old, new))
    return _with_evidence(rated, old, new, side)


def _is_harmful(found: Difference, side: Side) -> bool:
    return found.effect in (_HARMFUL[side], Effect.OTHER, Effect.UNKNOWN)


def _rated(found: Difference, side: Side, proof: Proof) -> RatedDifference:
    """Rate a difference: what callers notice by itself, or what it does to the values, whichever is worse."""
    noticed = Impact.COMPATIBLE if found.noticed is None else found.noticed
    if not _is_harmful(found, side):
        return RatedDifference(found, noticed)
    if proof == "no" or found.certain:
        return RatedDifference(found, Impact.BREAKING)
    if proof == "yes" or noticed is Impact.BREAKING:
        return RatedDifference(found, noticed)
    return RatedDifference(found, Impact.RISKY, undecided=True)


def _unexplained(
    rated: list[RatedDifference], found: list[Difference], proof: Proof, old: JsonSchema, new: JsonSchema
) -> Iterator[RatedDifference]:
    """Report the answer of the proof if no difference explains it."""
    worst_impact = worst([one.impact for one in rated])
    if proof == "no" and worst_impact is not Impact.BREAKING:
        message = "values that were valid no longer are, or the other way round"
        yield RatedDifference(Difference("values-changed", "", message, old, new), Impact.BREAKING)
    elif proof == "unknown" and not any(one.undecided or one.impact is Impact.BREAKING for one in rated):
        yield _undecided("the schemas differ, and it could not be decided how", old, new)
    elif proof == "yes" and not any(one.effect is not None for one in found):
        message = "the schema is written in another way"
        yield RatedDifference(Difference("schema-rewritten", "", message), Impact.COMPATIBLE)


def _disappeared(names: set[str]) -> RatedDifference:
    """Report properties that are gone although all values stay valid, for example behind `allOf`."""
    message = f"{', '.join(sorted(names))} no longer occurs"
    gone = Difference("property-removed", "", message, sorted(names), None, noticed=Impact.RISKY)
    return RatedDifference(gone, Impact.RISKY)


def _undecided(message: str, old: JsonSchema, new: JsonSchema) -> RatedDifference:
    return RatedDifference(Difference("schema-undecided", "", message, old, new), Impact.RISKY, undecided=True)


def _with_evidence(rated: list[RatedDifference], old: JsonSchema, new: JsonSchema, side: Side) -> list[RatedDifference]:
    """Give a breaking difference the values for which callers cannot go on, if it is the only one."""
    breaking = [index for index, one in enumerate(rated) if one.impact is Impact.BREAKING]
    if len(breaking) == 1 and _can_prove(old, new):
        [index] = breaking
        rated[index] = rated[index]._replace(evidence=_refused(old, new, side))
    return rated


def _can_prove(old: JsonSchema, new: JsonSchema) -> bool:
    return count_values(old) + count_values(new) <= _MAX_VALUES


def _prove(old: JsonSchema, new: JsonSchema, side: Side) -> Proof:
    """Decide whether callers can go on."""
    from jsonschema_rs import canonical

    try:
        must, may = _canonical(old, new, side)
        answer = may.covers(must)
    except Exception:  # of a library that knows many keywords, and not all combinations of them
        return "unknown"
    if answer is canonical.Containment.YES:
        return "yes"
    return "no" if answer is canonical.Containment.NO else "unknown"


def _refused(old: JsonSchema, new: JsonSchema, side: Side) -> Any:
    """Describe the values for which callers cannot go on; None if they cannot be described."""
    try:
        must, may = _canonical(old, new, side)
        evidence: Any = must.subtract(may).to_json_schema()
    except Exception:
        return None
    if isinstance(evidence, dict):
        evidence.pop("$schema", None)
    return evidence


def _canonical(old: JsonSchema, new: JsonSchema, side: Side) -> "tuple[CanonicalSchema, CanonicalSchema]":
    """Read the schema whose values callers have, and the one that must allow all of them."""
    from jsonschema_rs import canonicalize

    first, second = canonicalize(old, validate_formats=True), canonicalize(new, validate_formats=True)
    return (first, second) if side == "input" else (second, first)
