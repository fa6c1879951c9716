"""The walk through two schemas in normal form, which finds each difference and its place."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec.structs import replace

from axolotl_core.contract.changes import Impact
from axolotl_core.contract.keyword_diff import Difference, Effect, compare_keywords
from axolotl_core.contract.normal_form import (
    DEFINITION_PREFIX,
    STRUCTURE,
    Node,
    constraints,
    sort_key,
    structure,
)
from axolotl_core.schema import JsonSchema

Side: TypeAlias = Literal["input", "output"]
"""Whether a schema describes values that callers send or values that they receive."""

_HEADER: Final = "x-mcp-header"
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_NOTHING: Final = constraints(False)
_IGNORED: Final = frozenset({"$comment", "$schema"})
_RULES_OF_ANNOTATIONS: Final = {
    "default": "default-changed",
    "title": "text-changed",
    "description": "text-changed",
    "examples": "text-changed",
    "deprecated": "deprecation-changed",
    _HEADER: "header-changed",
}


def differences(old: JsonSchema, new: JsonSchema, side: Side, *, certain: bool) -> list[Difference]:
    """Compare two schemas; without `certain`, no difference is, because keywords may have unusual meanings."""
    walk = _Walk(side, old.get("$defs", {}), new.get("$defs", {}))
    without = [{key: value for key, value in one.items() if key != "$defs"} for one in (old, new)]
    walk.compare(without[0], without[1], "", certain)
    return walk.found


class _Walk:
    """The comparison of two schemas."""

    def __init__(self, side: Side, old_definitions: Mapping[str, Node], new_definitions: Mapping[str, Node]) -> None:
        self.found: list[Difference] = []
        self._side = side
        self._definitions = old_definitions, new_definitions
        self._is_recursive = bool(old_definitions or new_definitions)
        self._visited: dict[tuple[int, int], tuple[Node, Node]] = {}
        """The pairs behind references, by their identities; the objects are kept, so that no identity is reused."""

    def compare(self, old: Node, new: Node, at: str, certain: bool) -> None:
        """Compare the schemas of one value."""
        if old == new and not self._is_recursive:
            return
        self._compare_annotations(old, new, at)
        if _refers(old) or _refers(new):
            old, new = self._resolved(old, 0), self._resolved(new, 1)
            if (id(old), id(new)) in self._visited:
                return
            self._visited[id(old), id(new)] = old, new
        before, after = constraints(old), constraints(new)
        if not before or not after or _NOTHING in (before, after):
            self._compare_extremes(before, after, at, certain)
            return
        for key in _ALTERNATIVES:
            is_choice = before.keys() == {key} or after.keys() == {key}
            if is_choice and self._compare_branches(key, old, new, at, certain=certain):
                return
        self._compare_typed(before, after, at, certain)

    def _resolved(self, node: Node, which: int) -> Node:
        """Follow a reference to a recursive definition."""
        if _refers(node):
            target = self._definitions[which].get(node["$ref"].removeprefix(DEFINITION_PREFIX))
            return node if target is None else target
        return node

    def _add(self, rule: str, at: str, message: str, values: tuple[Any, Any], effect: Effect, *, certain: bool) -> None:
        self.found.append(Difference(rule, at, message, *values, effect, certain))

    def _compare_annotations(self, old: Node, new: Node, at: str) -> None:
        if not isinstance(old, dict) or not isinstance(new, dict):
            return
        for key in sorted((old.keys() | new.keys()) - STRUCTURE - _IGNORED):
            before, after = old.get(key), new.get(key)
            if (key in old) == (key in new) and before == after and type(before) is type(after):
                continue
            noticed = Impact.RISKY
            if key == _HEADER:
                noticed = Impact.BREAKING if self._side == "input" else Impact.COMPATIBLE
            elif key == "deprecated":
                noticed = Impact.COMPATIBLE
            rule, word = _RULES_OF_ANNOTATIONS.get(key, "keyword-changed"), "changed"
            if (key in old) != (key in new):
                word = "added" if key in new else "removed"
            message = f"{key} was {word}"
            self.found.append(Difference(rule, f"{at}/{_escaped(key)}", message, before, after, noticed=noticed))

    def _compare_extremes(self, before: Mapping[str, Any], after: Mapping[str, Any], at: str, certain: bool) -> None:
        """Compare schemas of which one allows everything or nothing."""
        if before == after:
            return
        if not after or before == _NOTHING:
            message = "any value is allowed now" if not after else "no value was allowed before"
            self._add("value-freed", at, message, (before, after), Effect.WIDER, certain=certain)
        else:
            message = "the value was not constrained before" if not before else "no value is allowed"
            self._add("value-constrained", at, message, (before, after), Effect.NARROWER, certain=certain)

    def _compare_typed(self, before: Mapping[str, Any], after: Mapping[str, Any], at: str, certain: bool) -> None:
        if before.get("type") != after.get("type") and not self._compare_types(before, after, at, certain):
            return
        for difference in compare_keywords(before, after, at):
            self.found.append(replace(difference, certain=difference.certain and certain))
        self._compare_properties(before, after, at, certain)
        self._compare_items(before, after, at, certain)

    def _compare_types(self, before: Mapping[str, Any], after: Mapping[str, Any], at: str, certain: bool) -> bool:
        """Compare types; return whether it makes sense to compare the rest."""
        old, new = _types(before), _types(after)
        shown = f"type: {_listed(before)} → {_listed(after)}"
        place, values = f"{at}/type", (before.get("type"), after.get("type"))
        if new is None or (old is not None and old < new):
            self._add("type-widened", place, shown, values, Effect.WIDER, certain=certain)
        elif old is None or new < old:
            self._add("type-narrowed", place, shown, values, Effect.NARROWER, certain=certain)
        else:
            self._add("type-changed", place, shown, values, Effect.OTHER, certain=certain)
            return False
        return True

    def _compare_properties(self, before: Mapping[str, Any], after: Mapping[str, Any], at: str, certain: bool) -> None:
        old, new = before.get("properties", {}), after.get("properties", {})
        required, still_required = set(before.get("required", ())), set(after.get("required", ()))
        rest, new_rest = before.get("additionalProperties", True), after.get("additionalProperties", True)
        if "patternProperties" in before or "patternProperties" in after:
            certain = False
        for name in sorted(old.keys() | new.keys() | required | still_required):
            place = f"{at}/properties/{_escaped(name)}"
            if name in old and name not in new:
                is_closed = new_rest is False
                self._property_removed(
                    name, old[name], place, was_required=name in required, is_closed=is_closed, certain=certain
                )
            elif name in new and name not in old:
                is_required = name in still_required
                self._property_added(name, new[name], place, rest, is_required=is_required, certain=certain)
            else:
                self._compare_required(name, place, name in required, name in still_required, certain)
                if name in old:
                    self.compare(old[name], new[name], place, certain)
        self._compare_rest(rest, new_rest, f"{at}/additionalProperties", certain)

    def _property_removed(
        self, name: str, schema: Node, at: str, *, was_required: bool, is_closed: bool, certain: bool
    ) -> None:
        is_harmless = self._side == "output" and is_closed and not was_required
        effect = Effect.WIDER if not is_closed else Effect.OTHER if was_required else Effect.NARROWER
        what = "argument" if self._side == "input" else "field"
        message, impact = f"the {what} {name} was removed", Impact.RISKY if is_harmless else Impact.BREAKING
        self.found.append(Difference("property-removed", at, message, schema, None, effect, certain, impact))

    def _property_added(
        self, name: str, schema: Node, at: str, rest: Node, *, is_required: bool, certain: bool
    ) -> None:
        what = "argument" if self._side == "input" else "field"
        if is_required:
            effect = Effect.OTHER if rest is False else Effect.NARROWER
            message = f"the required {what} {name} was added"
            self._add("property-required-added", at, message, (None, schema), effect, certain=certain)
            return
        certain = certain and isinstance(rest, bool) and bool(constraints(schema))
        effect = Effect.WIDER if rest is False else Effect.NARROWER if rest is True else Effect.UNKNOWN
        message = f"the optional {what} {name} was added"
        self._add("property-added", at, message, (None, schema), effect, certain=certain)

    def _compare_required(self, name: str, at: str, before: bool, after: bool, certain: bool) -> None:
        if before != after:
            rule, effect = ("property-required", Effect.NARROWER) if after else ("property-optional", Effect.WIDER)
            message = f"{name} is {'required' if after else 'optional'} now"
            self._add(rule, at, message, (before, after), effect, certain=certain)

    def _compare_rest(self, before: Node, after: Node, at: str, certain: bool) -> None:
        """Compare the schemas of properties without a schema of their own."""
        if before == after:
            return
        if before is False:
            self._add(
                "object-opened",
                at,
                "unknown properties are allowed now",
                (before, after),
                Effect.WIDER,
                certain=certain,
            )
        elif after is False:
            message = "unknown properties are no longer allowed"
            self._add("object-closed", at, message, (before, after), Effect.NARROWER, certain=certain)
        else:
            self.compare(before, after, at, certain)

    def _compare_items(self, before: Mapping[str, Any], after: Mapping[str, Any], at: str, certain: bool) -> None:
        old, new = before.get("prefixItems", []), after.get("prefixItems", [])
        rest, new_rest = before.get("items", True), after.get("items", True)
        if isinstance(rest, list) or isinstance(new_rest, list):
            self._add(
                "constraint-changed",
                f"{at}/items",
                "items was changed",
                (rest, new_rest),
                Effect.UNKNOWN,
                certain=False,
            )
            return
        for index in range(max(len(old), len(new))):
            place = f"{at}/prefixItems/{index}"
            first, second = (
                items[index] if index < len(items) else one for items, one in ((old, rest), (new, new_rest))
            )
            self.compare(first, second, place, certain)
        self.compare(rest, new_rest, f"{at}/items", certain)

    def _compare_branches(self, key: str, old: Node, new: Node, at: str, *, certain: bool) -> bool:
        """Compare alternatives; return False if one of the schemas has other keywords, too."""
        first, second = _branches(key, old), _branches(key, new)
        if first is None or second is None:
            return False
        pairs, lost, won = _paired(first, second)
        certain = certain and key == "anyOf" and _are_disjoint(first) and _are_disjoint(second)
        for before, after in pairs:
            self.compare(before, after, at, certain)
        for branches, word, null, effect in (
            (lost, "removed", "null-refused", Effect.NARROWER),
            (won, "added", "null-allowed", Effect.WIDER),
        ):
            for branch in branches:
                is_null = isinstance(branch, dict) and branch.get("type") == "null"
                rule = null if is_null else f"branch-{word}"
                message = f"null is {'no longer' if word == 'removed' else 'now'} allowed" if is_null else ""
                values = (branch, None) if word == "removed" else (None, branch)
                kind = effect if key == "anyOf" else Effect.UNKNOWN
                self._add(rule, f"{at}/{key}", message or f"an alternative was {word}", values, kind, certain=certain)
        return True


def _refers(node: Node) -> bool:
    return isinstance(node, dict) and str(node.get("$ref", "")).startswith(DEFINITION_PREFIX)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _listed(node: Mapping[str, Any]) -> str:
    kind = node.get("type", "any")
    return ", ".join(sorted(kind)) if isinstance(kind, list) else str(kind)


def _types(node: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the types of a schema, with `integer` as a part of `number`; None for all."""
    kind = node.get("type")
    if kind is None:
        return None
    kinds = {kind} if isinstance(kind, str) else set(kind)
    return frozenset(kinds | {"integer"} if "number" in kinds else kinds)


def _branches(key: str, node: Node) -> Sequence[Node] | None:
    """Return the alternatives of a schema, which may be the only one of itself."""
    own = constraints(node)
    if own.keys() == {key}:
        return list(own[key])
    return None if own.keys() & {"anyOf", "oneOf"} else [own]


def _paired(old: Sequence[Node], new: Sequence[Node]) -> tuple[list[tuple[Node, Node]], list[Node], list[Node]]:
    """Find the alternatives that belong together: equal ones, then those with equal marks, then those of one type."""
    pairs: list[tuple[Node, Node]] = []
    lost, won = list(old), list(new)
    for key_of in (_structure_key, _mark, _group):
        counts = Counter(map(key_of, lost)), Counter(map(key_of, won))
        targets = {key_of(one): one for one in won}
        matched = [one for one in lost if counts[0][key_of(one)] == counts[1][key_of(one)] == 1 and key_of(one)]
        for one in matched:
            partner = targets[key_of(one)]
            pairs.append((one, partner))
            lost = [other for other in lost if other is not one]
            won = [other for other in won if other is not partner]
    return pairs, lost, won


def _structure_key(node: Node) -> bytes:
    return sort_key(structure(node))


def _mark(node: Node) -> bytes:
    """Return the properties that have a single value, which tell alternatives apart; nothing if there are none."""
    properties = node.get("properties", {}) if isinstance(node, dict) else {}
    marks = {
        name: child["enum"]
        for name, child in properties.items()
        if isinstance(child, dict) and len(child.get("enum", ())) == 1
    }
    return sort_key(marks) if marks else b""


def _group(node: Node) -> bytes:
    kind = node.get("type") if isinstance(node, dict) else None
    if not isinstance(kind, str):
        return b""
    return b"number" if kind == "integer" else kind.encode()


def _are_disjoint(branches: Iterable[Node]) -> bool:
    groups = [_group(branch) for branch in branches]
    return all(groups) and len(set(groups)) == len(groups)
