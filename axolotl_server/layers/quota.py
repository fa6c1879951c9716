"""Rate limits and quotas around features."""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import ceil
from typing import Any, Final, TypeAlias

from axolotl_core.errors import QuotaExceeded
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.policies.quota import Charge, Claim, IQuotaStore, QuotaRefusal, QuotaRule, RateLimit
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.result_keys import own_meta

MakeKey: TypeAlias = Callable[[Principal], str]

_MAX_PART_CHARACTERS: Final = 64
_MAX_KNOWN_PRINCIPALS: Final = 256


def key_maker(rule: QuotaRule, charge: Charge, spec: FeatureSpec) -> MakeKey:
    """Compile the function that makes the key of a call of one feature.

    Different counters never share a key, whatever characters the names contain, and every key is short.
    """
    head = f"{rule.name}:{charge.scale}:"
    if "tool" in rule.per:
        head += f"tool={key_part(spec.kind)}{key_part(spec.name)}:"
    if "toolset" in rule.per:
        head += f"toolset={key_part(spec.toolset)}:"
    if "principal" in rule.per:
        head += "principal="

        def key_of(principal: Principal) -> str:
            issuer = "" if principal.issuer is None else key_part(principal.issuer)
            return f"{head}{key_part(principal.tenant)}{key_part(principal.subject)}{issuer}"

        return key_of
    if "tenant" in rule.per:
        head += "tenant="
        return lambda principal: head + key_part(principal.tenant)
    return lambda principal: head


def key_part(text: str | None) -> str:
    """Write a part of a key with its length, so that no other sequence of parts reads the same."""
    if text is None:
        return "-"
    if len(text) <= _MAX_PART_CHARACTERS:
        return f"{len(text)}:{text}"
    return f"#{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


class QuotaLayer(ILayer):
    """Charges the cost of each call to every rule that applies to it, or refuses the call and charges nothing."""

    def __init__(self, store: IQuotaStore, rules: Sequence[QuotaRule]) -> None:
        self._store = store
        self._rules = {rule.name: rule for rule in rules}
        self.idle = [*rules]
        """The rules that apply to no feature that was ever served, perhaps because of a misspelled name."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        rules = [rule for rule in self._rules.values() if rule.concerns(spec)]
        self.idle = [rule for rule in self.idle if rule not in rules]
        cost = spec.feature.cost
        if not rules or not cost:
            return call_next
        charges = [rule.charge(spec) for rule in rules]
        shares = [(key_maker(rule, charge, spec), charge) for rule, charge in zip(rules, charges, strict=True)]
        store, rules_by_name = self._store, self._rules
        known: dict[tuple[str | None, ...], tuple[Claim, ...]] = {}
        """The claims of the last principals, because their keys take longer to make than to look up."""

        def claims_of(principal: Principal) -> tuple[Claim, ...]:
            if len(known) >= _MAX_KNOWN_PRINCIPALS:
                known.clear()
            claims = known[principal.identity] = tuple((make_key(principal), charge) for make_key, charge in shares)
            return claims

        async def within(call: Call) -> Any:
            refusal = await store.take(known.get(call.principal.identity) or claims_of(call.principal))
            if refusal is not None:
                raise quota_exceeded(rules_by_name[refusal.rule], refusal)
            return await call_next(call)

        return within


def quota_exceeded(rule: QuotaRule, refusal: QuotaRefusal) -> QuotaExceeded:
    """Make the error for a call or request that a rule refuses."""
    milliseconds = ceil(refusal.retry_after_microseconds / 1000)
    what = f"Too many {rule.counts}" if isinstance(rule.limit, RateLimit) else "The quota is used up"
    return QuotaExceeded(
        f"{what}: the limit {rule.name!r} is {rule.limit}; try again in {_in_words(milliseconds)}",
        meta=own_meta(reason="quota", rule=rule.name, retryAfterMs=milliseconds),
    )


def _in_words(milliseconds: int) -> str:
    """Round a time up for people."""
    seconds = ceil(milliseconds / 1000)
    if seconds < 2:
        return "a second"
    if seconds < 120:
        return f"{seconds} seconds"
    if seconds < 7200:
        return f"{ceil(seconds / 60)} minutes"
    return f"{ceil(seconds / 3600)} hours"
