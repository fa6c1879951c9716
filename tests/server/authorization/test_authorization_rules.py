"""The standard policy: which rule decides."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core import Principal, tool
from axolotl_core.features.feature import IFeature
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.identity import ANONYMOUS
from tests.support.servers.restricted_servers import (
    ADA,
    PLAIN,
    PROMPTS,
    RESOURCES,
    TOOLS,
    closed_notes,
    files,
    greet,
    look,
    note,
    open_notes,
    policy_of,
    principals,
    refund,
    refurbish,
    rule_lists,
    spec_of,
)

SPECS = [spec_of(feature, "books.paid") for feature in (*TOOLS, *PROMPTS, *RESOURCES)]
METHOD = FeatureSpec(look, "extension", "receipts/Print", PLAIN, None)


def matches(said: Mapping[str, Any], principal: Principal, spec: FeatureSpec) -> bool:
    """Return whether a rule matches, by comparing the result with the default."""
    decisions = [
        policy_of({"name": "one", "effect": effect, **said}, default=default).judge(principal, spec)
        for effect, default in (("allow", "deny"), ("deny", "allow"))
    ]
    matched = {decision.rule == "one" for decision in decisions}
    assert len(matched) == 1, "a rule matches whatever its effect is"
    assert decisions[0].allowed is matched.pop() is not decisions[1].allowed
    return decisions[0].allowed


bracketed = tool(name="[kl]ook")(look.function)


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        ({}, True),
        ({"subjects": ["bob", "ada"]}, True),
        ({"subjects": ["Ada"]}, False),
        ({"tenants": ["acme"]}, True),
        ({"tenants": ["other"]}, False),
        ({"roles": ["admin", "clerk"]}, True),
        ({"roles": ["admin"]}, False),
        ({"scopes": ["books"]}, True),
        ({"scopes": ["books", "cash"]}, False),
        ({"anonymous": False}, True),
        ({"anonymous": True}, False),
        ({"subjects": ["ada"], "roles": ["admin"]}, False),
    ],
)
def test_who(who: Mapping[str, Any], expected: bool) -> None:
    """All conditions on the principal must hold: one of the listed values, but all of the scopes."""
    assert matches({"who": who}, ADA, spec_of(look)) is expected


@pytest.mark.parametrize(
    ("who", "expected"),
    [({"anonymous": True}, True), ({"anonymous": False}, False), ({"tenants": ["acme"]}, False), ({}, True)],
)
def test_anonymous_callers(who: Mapping[str, Any], expected: bool) -> None:
    """Anonymous callers have no tenant, and a rule can select them."""
    assert matches({"who": who}, ANONYMOUS, spec_of(look)) is expected


@pytest.mark.parametrize(
    ("what", "feature", "expected"),
    [
        ({}, look, True),
        ({"names": ["look"]}, look, True),
        ({"names": ["LOOK"]}, look, True),
        ({"names": ["lo"]}, look, False),
        ({"names": ["xlook", "lookx"]}, look, False),
        ({"names": ["*o*", "?ook*x*"]}, look, True),
        ({"names": ["REF*"]}, refund, True),
        ({"names": ["l??k"]}, look, True),
        ({"names": ["[kl]ook"]}, look, False),
        ({"names": ["[kl]ook", "a["]}, bracketed, True),
        ({"names": ["[kl]*"]}, bracketed, True),
        ({"names": ["notes://*"]}, open_notes, True),
        ({"names": ["Notes://open"]}, open_notes, False),
        ({"names": ["files://{+path}"]}, files, True),
        ({"names": ["files://secret"]}, files, False),
        ({"kinds": ["tool"]}, look, True),
        ({"kinds": ["prompt", "resource"]}, look, False),
        ({"kinds": ["prompt"]}, greet, True),
        ({"kinds": ["resource"]}, files, True),
        ({"toolsets": ["books"]}, look, True),
        ({"toolsets": ["books.paid"]}, look, True),
        ({"toolsets": ["book", "books.paid.late"]}, look, False),
        ({"tags": ["money", "other"]}, refund, True),
        ({"tags": ["money"]}, look, False),
        ({"names": ["refund"], "tags": ["other"]}, refund, False),
    ],
)
def test_what(what: Mapping[str, Any], feature: IFeature, expected: bool) -> None:
    """All conditions on the feature must hold; names are case-insensitive, URIs are not."""
    assert matches({"what": what}, ADA, spec_of(feature, "books.paid")) is expected


@pytest.mark.parametrize("toolset", ["books", "*"])
def test_outside_of_any_set(toolset: str) -> None:
    """A feature without a tool set matches no tool set condition."""
    assert not matches({"what": {"toolsets": [toolset]}}, ADA, spec_of(look))


@pytest.mark.parametrize(
    ("feature", "destructive", "read_only"),
    [(look, False, True), (refund, True, False), (note, False, False), (refurbish, True, False)],
)
def test_annotations(feature: IFeature, destructive: bool, read_only: bool) -> None:
    """A tool is destructive unless it declares otherwise, and read-only only if it declares it."""
    for word, expected in (("destructive", destructive), ("read_only", read_only)):
        for wanted in (True, False):
            assert matches({"what": {word: wanted}}, ADA, spec_of(feature)) is (wanted is expected)


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("word", ["destructive", "read_only"])
@pytest.mark.parametrize("feature", [greet, closed_notes, files])
def test_only_tools_have_annotations(feature: IFeature, word: str, wanted: bool) -> None:
    """Conditions on annotations match only tools."""
    assert not matches({"what": {word: wanted}}, ADA, spec_of(feature))


def test_methods_of_extensions() -> None:
    """A method of an extension is treated like a tool without annotations."""
    assert matches({"what": {"kinds": ["extension"], "names": ["receipts/print"]}}, ADA, METHOD)
    assert matches({"what": {"destructive": True}}, ADA, METHOD)
    assert not matches({"what": {"read_only": True}}, ADA, METHOD)
    assert not matches({"what": {"kinds": ["tool"]}}, ADA, METHOD)


def test_the_first_of_the_winning_effect_is_named() -> None:
    """A deny rule overrides allow rules in any order; the first matching rule of the winning effect is named."""
    allow = [{"name": f"allow {number}", "effect": "allow"} for number in (1, 2)]
    deny = [{"name": f"deny {number}", "effect": "deny"} for number in (1, 2)]
    other = {"name": "other", "effect": "deny", "who": {"subjects": ["bob"]}}
    assert policy_of(*allow, other).judge(ADA, spec_of(look)).rule == "allow 1"
    assert policy_of(*allow, other, *deny).judge(ADA, spec_of(look)).rule == "deny 1"


@pytest.mark.parametrize(("default", "allowed"), [("deny", False), ("allow", True)])
async def test_the_default(default: str, allowed: bool) -> None:
    """Without a matching rule, the default decides and is named."""
    decision = await policy_of({"name": "x", "effect": "allow", "who": {"subjects": ["x"]}}, default=default).decide(
        ADA, spec_of(look)
    )
    assert (decision.allowed, decision.rule) == (allowed, "default")


def test_idle_rules_are_found() -> None:
    """Rules that match no feature are reported."""
    policy = policy_of(
        {"name": "mistyped", "effect": "deny", "what": {"names": ["refnud"]}},
        {"name": "right", "effect": "deny", "what": {"names": ["refund"]}},
    )
    assert policy.idle(SPECS) == ["mistyped"]


@given(rule_lists, principals, st.sampled_from(SPECS), st.sampled_from(["deny", "allow"]), st.randoms())
def test_the_laws_of_policies(
    rules: list[dict[str, Any]], principal: Principal, spec: FeatureSpec, default: str, chance: random.Random
) -> None:
    """A matching deny always wins, the order does not matter, and explanations agree with decisions."""
    policy = policy_of(*rules, default=default)
    decision = policy.judge(principal, spec)
    matching = [one for one in policy.examine(principal, spec) if one.matches]
    denying = [one.rule for one in matching if one.effect == "deny"]
    if denying:
        assert (decision.allowed, decision.rule) == (False, denying[0])
    elif matching:
        assert (decision.allowed, decision.rule) == (True, matching[0].rule)
    else:
        assert (decision.allowed, decision.rule) == (default == "allow", "default")
    assert all(one.matches is (one.why_not == "") for one in policy.examine(principal, spec))
    shuffled = chance.sample(rules, len(rules))
    assert policy_of(*shuffled, default=default).judge(principal, spec).allowed is decision.allowed
    assert policy.judge(principal, spec) == decision, "a second look says the same"


@given(rule_lists, principals, principals)
def test_profiles_tell_principals_apart(rules: list[dict[str, Any]], one: Principal, other: Principal) -> None:
    """Principals with equal profiles may use the same features."""
    policy = policy_of(*rules)
    if policy.profile(one) == policy.profile(other):
        for spec in SPECS:
            assert policy.judge(one, spec) == policy.judge(other, spec)


@given(rule_lists, principals, st.sampled_from(SPECS))
def test_a_deny_rule_never_allows(rules: list[dict[str, Any]], principal: Principal, spec: FeatureSpec) -> None:
    """An additional deny rule never allows anything."""
    less = policy_of(*rules, {"name": "more", "effect": "deny", "what": {"names": ["re*"]}})
    assert not less.judge(principal, spec).allowed or policy_of(*rules).judge(principal, spec).allowed
