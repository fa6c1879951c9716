"""The keys that a rule counts under: one text for each caller, tool or tool set that has a count of its own."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final, TypeAlias

from axolotl_core.protocol.identity import Principal
from axolotl_core.quota import QuotaRule
from axolotl_core.quota_charge import Charge
from axolotl_core.spec import FeatureSpec

__all__ = ["MakeKey", "key_maker"]

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
