"""Keys of quotas, one per counted combination."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core import Principal
from axolotl_core.features.spec import FeatureSpec, Limits
from axolotl_core.policies.quota import Dimension, QuotaRule, RateLimit, WindowLimit
from axolotl_server.layers.quota import key_maker
from tests.support.tools import Echo

ALL: frozenset[Dimension] = frozenset({"principal", "tenant", "tool", "toolset"})
DAY = WindowLimit(1000, "day")
RULE = QuotaRule("rule", DAY, ALL)

names = st.one_of(st.text(alphabet="a1:-#=.", max_size=6), st.text(max_size=80))
identities = st.tuples(names, st.none() | names, names, st.none() | names, st.sampled_from(["tool", "prompt"]))


def key_of(identity: Any, rule: QuotaRule = RULE) -> str:
    subject, tenant, name, toolset, kind = identity
    spec = FeatureSpec(Echo(), kind, name, Limits(1.0, None, "loop", False), toolset)
    return key_maker(rule, rule.charge(spec), spec)(Principal(subject, tenant))


@given(identities, identities)
def test_keys_are_unique(one: Any, another: Any) -> None:
    """Different subjects, tenants, tools or tool sets have different keys, whatever their names."""
    assert (key_of(one) == key_of(another)) is (one == another)


@given(identities)
def test_keys_are_short(identity: Any) -> None:
    """The length of a key is bounded for names of any length."""
    subject, tenant, name, toolset, kind = identity
    assert len(key_of((subject * 100, tenant, name * 100, toolset, kind))) < 500


@pytest.mark.parametrize("dimension", ["principal", "tenant", "tool", "toolset", None])
def test_a_key_contains_only_the_counted_parts(dimension: Any) -> None:
    """Parts that a rule does not count separately are not in its keys."""
    rule = QuotaRule("rule", DAY, frozenset({dimension} if dimension else ()))
    parts = {"principal": "subject", "tenant": "tenant", "tool": "name", "toolset": "set"}
    key = key_of(("subject", "tenant", "name", "set", "tool"), rule)
    expected = {
        value for part, value in parts.items() if part == dimension or (part, dimension) == ("tenant", "principal")
    }
    assert {value for value in parts.values() if f":{value}" in key} == expected


def test_a_changed_rule() -> None:
    """A rule with another rate or window starts a new count, but a raised quota continues its count."""
    keys = [
        key_of(("ada", None, "echo", None, "tool"), QuotaRule("rule", limit, frozenset({"principal"})))
        for limit in (
            RateLimit(1.0, 5.0),
            RateLimit(2.0, 5.0),
            WindowLimit(5, "day"),
            WindowLimit(5, "hour"),
            WindowLimit(9, "day"),
        )
    ]
    assert len(set(keys)) == 4
    assert keys[2] == keys[4]
