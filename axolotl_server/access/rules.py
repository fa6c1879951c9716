"""The built-in authorizer, which follows the rules of the settings."""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar, cast

from axolotl_core.features.feature import NAMED_KINDS
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.names import is_within_toolset, name_pattern
from axolotl_core.policies.access import Decision, IAuthorizer
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.tools.tool import ITool, ToolAnnotations
from axolotl_server.settings.policies import AuthorizationRule, AuthorizationSettings, What, Who

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Condition(Generic[ItemT]):
    """A condition on principals or features."""

    holds: Callable[[ItemT], bool]
    why_not: Callable[[ItemT], str]
    """Tells why the condition does not hold."""


def _who_conditions(who: Who) -> Iterator[Condition[Principal]]:
    """Compile the conditions of a rule on principals."""
    subjects, tenants, roles, scopes, anonymous = who.subjects, who.tenants, who.roles, who.scopes, who.anonymous
    if subjects is not None:
        yield Condition(
            lambda one: one.subject in subjects, lambda one: f"the subject is not one of {_listed(subjects)}"
        )
    if tenants is not None:
        yield Condition(lambda one: one.tenant in tenants, lambda one: f"the tenant is not one of {_listed(tenants)}")
    if roles is not None:
        yield Condition(
            lambda one: not roles.isdisjoint(one.roles),
            lambda one: f"the principal has none of the roles {_listed(roles)}",
        )
    if scopes is not None:
        yield Condition(
            lambda one: scopes.issubset(one.scopes),
            lambda one: f"the principal lacks the scopes {_listed(scopes - one.scopes)}",
        )
    if anonymous is not None:
        yield Condition(
            lambda one: (one == ANONYMOUS) is anonymous,
            lambda one: "the principal is known" if anonymous else "the principal is anonymous",
        )


def _what_conditions(what: What) -> Iterator[Condition[FeatureSpec]]:
    """Compile the conditions of a rule on features."""
    names, kinds, toolsets, tags = what.names, what.kinds, what.toolsets, what.tags
    if names is not None:
        yield Condition(_named(names), lambda spec: f"the name matches none of {_listed(names)}")
    if kinds is not None:
        yield Condition(lambda spec: spec.kind in kinds, lambda spec: f"the kind is not one of {_listed(kinds)}")
    if toolsets is not None:
        yield Condition(
            lambda spec: spec.toolset is not None and is_within_toolset(spec.toolset, toolsets),
            lambda spec: f"the {spec.kind} is in none of the tool sets {_listed(toolsets)}",
        )
    if tags is not None:
        yield Condition(
            lambda spec: not tags.isdisjoint(spec.feature.tags),
            lambda spec: f"the {spec.kind} has none of the tags {_listed(tags)}",
        )
    if what.destructive is not None:
        yield _annotated(
            "destructive", what.destructive, lambda one: one.read_only is not True and one.destructive is not False
        )
    if what.read_only is not None:
        yield _annotated("read-only", what.read_only, lambda one: one.read_only is True)


def _named(patterns: Collection[str]) -> Callable[[FeatureSpec], bool]:
    """Compare names in any case, like lookups, and URIs exactly."""
    exact = re.compile("|".join(map(name_pattern, patterns)))
    folded = re.compile("|".join(name_pattern(pattern.casefold()) for pattern in patterns))

    def holds(spec: FeatureSpec) -> bool:
        if spec.kind not in NAMED_KINDS:
            return exact.match(spec.name) is not None
        return folded.match(spec.name.casefold()) is not None

    return holds


def _annotated(word: str, expected: bool, judge: Callable[[ToolAnnotations], bool]) -> Condition[FeatureSpec]:
    def holds(spec: FeatureSpec) -> bool:
        annotations = _annotations_of(spec)
        return annotations is not None and judge(annotations) is expected

    def why_not(spec: FeatureSpec) -> str:
        if _annotations_of(spec) is None:
            return f"a {spec.kind} has no annotations"
        return f"the {spec.kind} is {'not ' if expected else ''}{word}"

    return Condition(holds, why_not)


def _annotations_of(spec: FeatureSpec) -> ToolAnnotations | None:
    """Return the annotations of a tool; a method of an extension counts as a tool without any."""
    if spec.kind == "extension":
        return ToolAnnotations()
    return cast("ITool[Any, Any]", spec.feature).annotations if spec.kind == "tool" else None


def _listed(words: Collection[str]) -> str:
    return ", ".join(sorted(words))


_MAX_CACHED: Final = 20_000


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """The result of comparing one rule with a principal and a feature."""

    rule: str
    effect: Literal["allow", "deny"]
    matches: bool
    why_not: str = ""


class _Rule:
    """A compiled rule."""

    def __init__(self, rule: AuthorizationRule) -> None:
        self.rule = rule
        self.decision = Decision(rule.effect == "allow", rule.name, f"a rule in the settings: {rule.effect}")
        self.who = tuple(_who_conditions(rule.who))
        self._what = tuple(_what_conditions(rule.what))

    def concerns(self, principal: Principal) -> bool:
        for condition in self.who:  # noqa: SIM110 - each call waits for this, and a generator is slow
            if not condition.holds(principal):
                return False
        return True

    def covers(self, spec: FeatureSpec) -> bool:
        return all(condition.holds(spec) for condition in self._what)

    def examine(self, principal: Principal, spec: FeatureSpec) -> RuleMatch:
        whys = [
            *(one.why_not(principal) for one in self.who if not one.holds(principal)),
            *(one.why_not(spec) for one in self._what if not one.holds(spec)),
        ]
        return RuleMatch(self.rule.name, self.rule.effect, not whys, "; ".join(whys))


class DefaultAuthorizer(IAuthorizer):
    """Follows the rules of the settings: `deny` comes before `allow`, and the default applies if no rule matches."""

    def __init__(self, settings: AuthorizationSettings) -> None:
        self._rules = [_Rule(rule) for rule in settings.rules]
        self._by_weight = sorted(self._rules, key=lambda rule: rule.decision.allowed)
        self._default = Decision(settings.default == "allow", "default", "no rule applies")
        self._covering: dict[FeatureSpec, tuple[_Rule, ...]] = {}

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        return self.judge(principal, spec)

    def judge(self, principal: Principal, spec: FeatureSpec) -> Decision:
        """Find the rule that decides."""
        for rule in self._rules_for(spec):
            for condition in rule.who:
                if not condition.holds(principal):
                    break
            else:  # as `concerns` says; it is written out, because each call asks all rules
                return rule.decision
        return self._default

    def profile(self, principal: Principal) -> Hashable:
        """Return a value that all decisions depend on: principals with equal profiles get equal decisions."""
        return tuple(rule.concerns(principal) for rule in self._rules)

    def examine(self, principal: Principal, spec: FeatureSpec) -> list[RuleMatch]:
        """Compare all rules, in their order, with a principal and a feature."""
        return [rule.examine(principal, spec) for rule in self._rules]

    def idle(self, specs: Iterable[FeatureSpec]) -> list[str]:
        """Name the rules that apply to none of these features, for example because of a misspelled name."""
        known = tuple(specs)
        return [one.rule.name for one in self._rules if not any(map(one.covers, known))]

    def unreachable(self, specs: Iterable[FeatureSpec]) -> list[FeatureSpec]:
        """Return the features that nobody may use, because the default denies them and no rule allows them."""
        if self._default.allowed:
            return []
        return [spec for spec in specs if not any(rule.decision.allowed for rule in self._rules_for(spec))]

    def _rules_for(self, spec: FeatureSpec) -> tuple[_Rule, ...]:
        """Choose the rules that cover a feature, those that deny first; the answer is cached."""
        rules = self._covering.get(spec)
        if rules is None:
            if len(self._covering) >= _MAX_CACHED:
                self._covering.clear()
            rules = self._covering[spec] = tuple(rule for rule in self._by_weight if rule.covers(spec))
        return rules
