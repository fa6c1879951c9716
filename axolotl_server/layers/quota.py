"""How much a caller may use: rates and quotas."""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import ceil, isfinite
from typing import Any, Final, TypeAlias

from axolotl_core.errors import ConfigurationError, QuotaExceeded
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ILayer, Invoke, ToolCall
from axolotl_core.policies.quota import Charge, IQuotaStore, QuotaRefusal, QuotaRule, RateLimit
from axolotl_core.protocol.identity import Principal

MakeKey: TypeAlias = Callable[[Principal], str]

_LONGEST_PART: Final = 64


def key_maker(rule: QuotaRule, charge: Charge, spec: FeatureSpec) -> MakeKey:
    """Compile what makes the key of a call of one feature.

    No two of what a rule counts apart have the same key, whatever is in their names; and no key is long.
    """
    head = f"{rule.name}:{charge.scale}:"
    if "tool" in rule.per:
        head += f"tool={_part(spec.kind)}{_part(spec.name)}:"
    if "toolset" in rule.per:
        head += f"toolset={_part(spec.toolset)}:"
    if "principal" in rule.per:
        head += "principal="
        return lambda principal: f"{head}{_part(principal.tenant)}{_part(principal.subject)}{_issuer(principal)}"
    if "tenant" in rule.per:
        head += "tenant="
        return lambda principal: head + _part(principal.tenant)
    return lambda principal: head


def _issuer(principal: Principal) -> str:
    return "" if principal.issuer is None else _part(principal.issuer)


def _part(text: str | None) -> str:
    """Write a part of a key so that nothing else reads the same: its length says where it ends."""
    if text is None:
        return "-"
    if len(text) <= _LONGEST_PART:
        return f"{len(text)}:{text}"
    return f"#{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


class QuotaLayer(ILayer):
    """Takes the cost of each call from every rule that concerns it, or refuses the call and takes nothing."""

    def __init__(self, store: IQuotaStore, rules: Sequence[QuotaRule]) -> None:
        self._store = store
        self._rules = {rule.name: rule for rule in rules}
        self._idle = dict(self._rules)

    @property
    def idle(self) -> tuple[QuotaRule, ...]:
        """The rules that concern nothing that was ever served, perhaps for a misspelt name."""
        return tuple(self._idle.values())

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Find the rules that concern a feature; one without, or that costs nothing, is left alone.

        Raises:
            ConfigurationError: if its cost is none, or more than a rule ever allows.
        """
        rules = [rule for rule in self._rules.values() if rule.concerns(spec)]
        for rule in rules:
            self._idle.pop(rule.name, None)
        cost = spec.feature.cost
        if not (isfinite(cost) and cost >= 0):
            raise ConfigurationError(f"{spec.kind.title()} {spec.name!r} has the cost {cost}: use a number from 0")
        if not rules or not cost:
            return call_next
        charges = [rule.charge(spec) for rule in rules]
        shares = [(key_maker(rule, charge, spec), charge) for rule, charge in zip(rules, charges, strict=True)]
        take = self._store.take

        async def within(call: ToolCall) -> Any:
            principal = call.principal
            refusal = await take([(make_key(principal), charge) for make_key, charge in shares])
            if refusal is not None:
                raise self._refused(refusal)
            return await call_next(call)

        return within

    def _refused(self, refusal: QuotaRefusal) -> QuotaExceeded:
        rule = self._rules[refusal.rule]
        milliseconds = ceil(refusal.retry_after_microseconds / 1000)
        what = "Too many calls" if isinstance(rule.limit, RateLimit) else "The quota is used up"
        return QuotaExceeded(
            f"{what}: the limit {rule.name!r} is {rule.limit}; try again in {_in_words(milliseconds)}",
            meta={"reason": "quota", "rule": rule.name, "retryAfterMs": milliseconds},
        )


def _in_words(milliseconds: int) -> str:
    """Round a time up to what a reader can use."""
    seconds = ceil(milliseconds / 1000)
    if seconds < 2:
        return "a second"
    if seconds < 120:
        return f"{seconds} seconds"
    if seconds < 7200:
        return f"{ceil(seconds / 60)} minutes"
    return f"{ceil(seconds / 3600)} hours"
