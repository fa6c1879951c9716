"""The ready policy: rules from the settings."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from axolotl_core.authorization import Decision, IAuthorizer
from axolotl_core.protocol.identity import Principal
from axolotl_core.spec import FeatureSpec
from axolotl_server.authorization.conditions import Condition, what_conditions, who_conditions
from axolotl_server.authorization.settings import AuthorizationRule, AuthorizationSettings

__all__ = ["DefaultAuthorizer", "Examined"]

_MOST_KEPT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Examined:
    """One rule, and whether it concerns a principal and a feature."""

    rule: str
    effect: Literal["allow", "deny"]
    matches: bool
    why_not: str = ""


class _Rule:
    """A rule made ready."""

    def __init__(self, said: AuthorizationRule) -> None:
        self.said = said
        self.decision = Decision(said.effect == "allow", said.name, f"a rule of the settings, {said.effect}")
        self._who: tuple[Condition[Principal], ...] = who_conditions(said.who)
        self._what: tuple[Condition[FeatureSpec], ...] = what_conditions(said.what)

    def concerns(self, principal: Principal) -> bool:
        return all(condition.holds(principal) for condition in self._who)

    def covers(self, spec: FeatureSpec) -> bool:
        return all(condition.holds(spec) for condition in self._what)

    def examine(self, principal: Principal, spec: FeatureSpec) -> Examined:
        whys = [
            *(one.otherwise(principal) for one in self._who if not one.holds(principal)),
            *(one.otherwise(spec) for one in self._what if not one.holds(spec)),
        ]
        return Examined(self.said.name, self.said.effect, not whys, "; ".join(whys))


class DefaultAuthorizer(IAuthorizer):
    """Follows the rules of the settings: one that denies beats all that allow, and without any the default holds."""

    def __init__(self, settings: AuthorizationSettings) -> None:
        self._rules = [_Rule(said) for said in settings.rules]
        self._by_weight = sorted(self._rules, key=lambda rule: rule.decision.allowed)
        self._default = Decision(settings.default == "allow", "default", "no rule concerns it")
        self._covering: dict[FeatureSpec, tuple[_Rule, ...]] = {}

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        """Find the rule that decides; it never waits."""
        return self.judge(principal, spec)

    def judge(self, principal: Principal, spec: FeatureSpec) -> Decision:
        """Find the rule that decides."""
        covering = self._covering.get(spec)
        for rule in self._rules_for(spec) if covering is None else covering:
            if rule.concerns(principal):
                return rule.decision
        return self._default

    def profile(self, principal: Principal) -> Hashable:
        """Tell what all decisions depend on: about principals with the same profile they are the same."""
        return tuple(rule.concerns(principal) for rule in self._rules)

    def examine(self, principal: Principal, spec: FeatureSpec) -> list[Examined]:
        """Look at all rules in their order and say of each whether it matches, and if not, why."""
        return [rule.examine(principal, spec) for rule in self._rules]

    def idle(self, specs: Iterable[FeatureSpec]) -> list[str]:
        """Name the rules that concern none of these features, as one with a mistyped name does."""
        known = tuple(specs)
        return [rule.said.name for rule in self._rules if not any(map(rule.covers, known))]

    def _rules_for(self, spec: FeatureSpec) -> tuple[_Rule, ...]:
        """Choose the rules that cover a feature, those that deny first, once."""
        if len(self._covering) >= _MOST_KEPT:
            self._covering.clear()
        rules = self._covering[spec] = tuple(rule for rule in self._by_weight if rule.covers(spec))
        return rules
