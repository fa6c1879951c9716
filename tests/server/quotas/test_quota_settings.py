"""Settings of quotas, and the rules and stores made from them."""

import tomllib
from typing import Any

import pytest
from pydantic import ValidationError

from axolotl_core import ConfigurationError, Refused
from axolotl_core.policies.quota import QuotaRule, RateLimit, WindowLimit
from axolotl_server.access.quotas import OutageTolerantStore, quota_layer, quota_rules, quota_store
from axolotl_server.layers.quota import QuotaLayer
from axolotl_server.settings.policies import QuotaSettings
from axolotl_server.stores.quotas import MemoryQuotaStore
from tests.support.core.quota_model import claims_of
from tests.support.stores.redis_server import redis_client


def settings_of(text: str) -> QuotaSettings:
    return QuotaSettings.model_validate(tomllib.loads(text))


def test_rules_are_read() -> None:
    """A table of rules becomes rules in the same order."""
    settings = settings_of("""
        [rules.per-user]
        per = ["principal"]
        rate_per_second = 50
        burst = 100

        [rules.expensive]
        per = ["principal", "tool"]
        tools = ["report.*"]
        toolsets = ["billing"]
        kinds = ["tool", "prompt"]
        limit = 1000
        window = "day"
    """)
    assert quota_rules(settings) == (
        QuotaRule("per-user", RateLimit(50.0, 100.0), frozenset({"principal"})),
        QuotaRule(
            "expensive",
            WindowLimit(1000.0, "day"),
            frozenset({"principal", "tool"}),
            ("report.*",),
            ("billing",),
            frozenset({"tool", "prompt"}),
        ),
    )


@pytest.mark.parametrize(("rate", "burst"), [(50, 50.0), (0.1, 1.0)])
def test_the_burst_of_a_rate(rate: float, burst: float) -> None:
    """The default burst is the number of calls per second, but at least one call."""
    settings = settings_of(f"[rules.rule]\nrate_per_second = {rate}")
    assert [rule.limit for rule in quota_rules(settings)] == [RateLimit(rate, burst)]


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"per": ["principal"]},
        {"burst": 5},
        {"limit": 5},
        {"window": "day"},
        {"rate_per_second": 1, "limit": 5, "window": "day"},
        {"rate_per_second": 1, "window": "day"},
        {"burst": 5, "limit": 5, "window": "day"},
        {"rate_per_second": 0},
        {"limit": 0, "window": "day"},
        {"limit": 5, "window": "week"},
        {"rate_per_second": 1, "per": ["address"]},
        {"rate_per_second": 1, "kinds": ["tools"]},
        {"rate_per_second": 1, "rule": "x"},
    ],
)
def test_invalid_rules(rule: Any) -> None:
    """A rule is either a rate or a quota, and complete."""
    with pytest.raises(ValidationError):
        QuotaSettings.model_validate({"rules": {"rule": rule}})


@pytest.mark.parametrize("name", ["", "a:b", "a b", "x" * 65])
def test_invalid_names(name: str) -> None:
    """The name of a rule is a plain word, because it is part of keys and error messages."""
    with pytest.raises(ValidationError):
        QuotaSettings.model_validate({"rules": {name: {"rate_per_second": 1}}})


def test_invalid_limits_are_reported_together() -> None:
    """All rules with invalid numbers are reported at startup."""
    settings = settings_of("""
        [rules.fine]
        rate_per_second = 0.123457
        burst = 1e12

        [rules.vast]
        limit = 1e300
        window = "day"
    """)
    with pytest.raises(ConfigurationError) as failure:
        quota_rules(settings)
    assert [finding.partition(":")[0] for finding in failure.value.findings] == [
        "Setting quotas.rules.fine",
        "Setting quotas.rules.vast",
    ]


def test_nothing_is_limited_by_default() -> None:
    """By default there are no rules, and counts are kept in memory."""
    settings = QuotaSettings()
    assert quota_rules(settings) == ()
    assert isinstance(quota_store(settings, None), MemoryQuotaStore)
    assert isinstance(quota_layer(settings, quota_store(settings, None)), QuotaLayer)


async def test_the_configured_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of the container takes precedence over Redis, and both are protected against outages."""
    monkeypatch.setattr("axolotl_server.access.quotas._STORE_RETRY_SECONDS", 7.0)
    settings = QuotaSettings(on_store_failure="closed")
    claims = claims_of([("key", WindowLimit(2, "day"), 1.0)])
    given = MemoryQuotaStore(1)
    async with redis_client("redis://127.0.0.1:1") as redis:
        for redis_or_none in (redis, None):
            store = quota_store(settings, redis_or_none, given)
            assert isinstance(store, OutageTolerantStore)
            assert await store.take(claims) is None
        assert await given.take(claims) is not None
        with pytest.raises(Refused) as failure:
            await quota_store(settings, redis).take(claims)
    assert failure.value.meta == {"axolotl/reason": "quota_unavailable", "axolotl/retryAfterMs": 7000}
