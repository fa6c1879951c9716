"""Differences between the keywords of two schemas: values, bounds, patterns, formats and others."""

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any, Final

import msgspec

from axolotl_core.contract.changes import Impact
from axolotl_core.contract.normal_form import Bound, annotations_in, bounds, exact, sort_key, structure


class Effect(Enum):
    """What a difference does to the values that are valid."""

    WIDER = auto()
    """No value becomes invalid."""
    NARROWER = auto()
    """No value becomes valid."""
    OTHER = auto()
    """Some values become valid and others invalid."""
    UNKNOWN = auto()


class Difference(msgspec.Struct, frozen=True):
    """A difference between two schemas."""

    rule: str
    pointer: str
    message: str
    old: Any = None
    new: Any = None
    effect: Effect | None = None
    """What it does to the values that are valid; None if validation does not depend on it."""
    certain: bool = False
    """Whether the effect follows from this difference alone, whatever else the schemas contain."""
    noticed: Impact | None = None
    """What it means for callers even if all values stay valid."""


_MINIMUMS: Final = ("minLength", "minItems", "minProperties")
_MAXIMUMS: Final = ("maxLength", "maxItems", "maxProperties")
_OPAQUE: Final = (
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "contains",
    "minContains", "maxContains", "propertyNames", "patternProperties", "uniqueItems", "unevaluatedItems",
    "unevaluatedProperties", "const", "$ref", "$defs", "definitions", "$id", "$anchor", "$dynamicRef",
    "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "additionalItems", "dependencies",
)  # fmt: skip
"""Keywords that are compared as a whole."""
_ONLY_NARROW: Final = frozenset(
    {"allOf", "not", "dependentRequired", "dependentSchemas", "propertyNames", "uniqueItems"}
)
"""Keywords that refuse values when they are added, and never allow more."""
_FORMATS: Final = frozenset(
    {
        "date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6",
        "uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer",
        "relative-json-pointer", "regex",
    }
)  # fmt: skip
"""The formats that validators know."""
TEXTS: Final = ("title", "description", "examples")


def compare_keywords(old: Mapping[str, Any], new: Mapping[str, Any], at: str) -> Iterator[Difference]:
    """Compare all keywords except those of nested values."""
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    for keys, compare in _COMPARED.items():
        if not changed.isdisjoint(keys):
            yield from compare(old, new, at)
    for key in _OPAQUE:
        if key in changed:
            yield from _opaque(key, old, new, at)


def _enum(old: Mapping[str, Any], new: Mapping[str, Any], at: str) -> Iterator[Difference]:
    before, after = old.get("enum"), new.get("enum")
    if before is None or after is None:
        rule, effect = ("enum-grown", Effect.WIDER) if after is None else ("enum-shrunk", Effect.NARROWER)
        message = "the list of values was dropped" if after is None else "only some values are allowed"
    else:
        known, given = {sort_key(value): value for value in before}, {sort_key(value): value for value in after}
        lost = [known[key] for key in known.keys() - given.keys()]
        won = [given[key] for key in given.keys() - known.keys()]
        texts = [f"{_listed(values)} {word}" for values, word in ((lost, "removed"), (won, "added")) if values]
        message = "values: " + ", ".join(texts)
        if lost and won:
            rule, effect = "enum-changed", Effect.OTHER
        else:
            rule, effect = ("enum-shrunk", Effect.NARROWER) if lost else ("enum-grown", Effect.WIDER)
    yield Difference(rule, f"{at}/enum", message, before, after, effect, certain=True)


def _listed(values: list[Any]) -> str:
    shown = sorted(sort_key(value).decode() for value in values)
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")


def _bounds(old: Mapping[str, Any], new: Mapping[str, Any], at: str) -> Iterator[Difference]:
    for key in _MINIMUMS:
        before, after = old.get(key, 0), new.get(key, 0)
        if before != after:
            yield _bound(key, at, old.get(key), new.get(key), tightened=after > before)
    for key in _MAXIMUMS:
        before, after = old.get(key), new.get(key)
        if before != after:
            yield _bound(key, at, before, after, tightened=before is None or (after is not None and after < before))
    (lower, upper), (new_lower, new_upper) = bounds(old), bounds(new)
    if lower != new_lower:
        tightened = lower is None or (new_lower is not None and new_lower > lower)
        yield _bound("minimum", at, _shown(lower), _shown(new_lower), tightened=tightened)
    if upper != new_upper:
        tightened = upper is None or (new_upper is not None and _upper_key(new_upper) < _upper_key(upper))
        yield _bound("maximum", at, _shown(upper), _shown(new_upper), tightened=tightened)


def _upper_key(bound: Bound) -> tuple[Any, bool]:
    return bound[0], not bound[1]


def _shown(bound: Bound | None) -> Any:
    """Write a bound as a number; an excluded one as text."""
    if bound is None:
        return None
    number = int(bound[0]) if bound[0].denominator == 1 else float(bound[0])
    return f"excluding {number}" if bound[1] else number


def _bound(key: str, at: str, before: Any, after: Any, *, tightened: bool) -> Difference:
    rule, effect = ("bound-tightened", Effect.NARROWER) if tightened else ("bound-widened", Effect.WIDER)
    message = f"{key}: {_or_none(before)} → {_or_none(after)}"
    return Difference(rule, f"{at}/{key}", message, before, after, effect, certain=True)


def _or_none(value: Any) -> str:
    return "none" if value is None else str(value)


def _multiple(old: Mapping[str, Any], new: Mapping[str, Any], at: str) -> Iterator[Difference]:
    before, after = old.get("multipleOf"), new.get("multipleOf")
    if before is None or (after is not None and exact(after) % exact(before) == 0):
        rule, effect = "multiple-tightened", Effect.NARROWER
    elif after is None or exact(before) % exact(after) == 0:
        rule, effect = "multiple-widened", Effect.WIDER
    else:
        rule, effect = "multiple-changed", Effect.OTHER
    message = f"multipleOf: {_or_none(before)} → {_or_none(after)}"
    yield Difference(rule, f"{at}/multipleOf", message, before, after, effect, certain=True)


def _pattern(old: Mapping[str, Any], new: Mapping[str, Any], at: str) -> Iterator[Difference]:
    before, after = old.get("pattern"), new.get("pattern")
    if before is not None and after is not None:
        rule, effect = "pattern-changed", Effect.UNKNOWN
    else:
        rule, effect = ("pattern-added", Effect.NARROWER) if before is None else ("pattern-dropped", Effect.WIDER)
    message = f"pattern: {_or_none(before)} → {_or_none(after)}"
    yield Difference(rule, f"{at}/pattern", message, before, after, effect)


def _format(old: Mapping[str, Any], new: Mapping[str, Any], at: str) -> Iterator[Difference]:
    before, after = old.get("format"), new.get("format")
    certain = {before, after} <= _FORMATS | {None}
    if before is not None and after is not None:
        rule, effect = "format-changed", Effect.OTHER if certain else Effect.UNKNOWN
    else:
        rule, effect = ("format-added", Effect.NARROWER) if before is None else ("format-dropped", Effect.WIDER)
    message = f"format: {_or_none(before)} → {_or_none(after)}"
    yield Difference(rule, f"{at}/format", message, before, after, effect, certain)


_COMPARED: Final = {
    ("enum",): _enum,
    (*_MINIMUMS, *_MAXIMUMS, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"): _bounds,
    ("multipleOf",): _multiple,
    ("pattern",): _pattern,
    ("format",): _format,
}
"""The comparisons of keywords, by the keywords that they are about."""


def _opaque(key: str, old: Mapping[str, Any], new: Mapping[str, Any], at: str) -> Iterator[Difference]:
    before, after = old.get(key), new.get(key)
    if key in old and key in new and annotations_in({key: before}) != annotations_in({key: after}):
        message = f"texts or defaults in {key} were changed"
        yield Difference("text-changed", f"{at}/{key}", message, before, after, noticed=Impact.RISKY)
    if key in old and key in new and structure({key: before}) == structure({key: after}):
        return
    if key in old and key in new:
        rule, effect, word = "constraint-changed", Effect.UNKNOWN, "changed"
    elif key in new:
        effect = Effect.NARROWER if key in _ONLY_NARROW else Effect.UNKNOWN
        rule, word = "constraint-added", "added"
    else:
        effect = Effect.WIDER if key in _ONLY_NARROW else Effect.UNKNOWN
        rule, word = "constraint-dropped", "dropped"
    yield Difference(rule, f"{at}/{key}", f"{key} was {word}", before, after, effect)
