"""Quota rules: the features they apply to, the cost of calls, and invalid numbers."""

import math
from typing import Any

import pytest

from axolotl_core import ConfigurationError
from axolotl_core.features.feature import Kind
from axolotl_core.features.spec import FeatureSpec, Limits
from axolotl_core.policies.quota import QuotaRule, RateLimit, WindowLimit
from tests.support.core.sample_tools import Named

RATE = RateLimit(50.0, 100.0)


def spec_of(name: str, *, kind: Kind = "tool", toolset: str | None = None, cost: float = 1.0) -> FeatureSpec:
    feature = Named(name)
    feature.cost = cost
    return FeatureSpec(feature, kind, name, Limits(1.0, None, "loop", False), toolset)


@pytest.mark.parametrize(
    ("selection", "spec", "concerned"),
    [
        ({}, spec_of("report.month"), True),
        ({}, spec_of("greet", kind="prompt"), True),
        ({"tools": ("report.*",)}, spec_of("report.month"), True),
        ({"tools": ("Report.*",)}, spec_of("rePORT.Month"), True),
        ({"tools": ("report.*",)}, spec_of("reports"), False),
        ({"tools": ("report",)}, spec_of("report.month"), False),
        ({"tools": ("a", "report.?onth")}, spec_of("report.month"), True),
        ({"tools": ("report.*",)}, spec_of("report.month", kind="prompt"), False),
        ({"tools": ("report.*",), "kinds": frozenset({"prompt"})}, spec_of("report.month", kind="prompt"), True),
        ({"kinds": frozenset({"prompt", "resource"})}, spec_of("greet"), False),
        ({"kinds": frozenset({"resource"}), "tools": ("db://*",)}, spec_of("db://x/{id}", kind="resource"), True),
        ({"toolsets": ("billing",)}, spec_of("pay", toolset="billing"), True),
        ({"toolsets": ("billing",)}, spec_of("pay", toolset="billing.cards"), True),
        ({"toolsets": ("billing",)}, spec_of("pay", toolset="billings"), False),
        ({"toolsets": ("billing.cards",)}, spec_of("pay", toolset="billing"), False),
        ({"toolsets": ("None",)}, spec_of("pay"), False),
        ({"toolsets": ("billing",), "tools": ("pay",)}, spec_of("refund", toolset="billing"), False),
    ],
)
def test_features_of_a_rule(selection: Any, spec: FeatureSpec, concerned: bool) -> None:
    """A rule applies if names, tool sets and kinds all match."""
    assert QuotaRule("rule", RATE, **selection).concerns(spec) is concerned


@pytest.mark.parametrize(("limit", "cost"), [(RateLimit(1.0, 2.0), 2.001), (WindowLimit(1000, "day"), 1001.0)])
def test_a_call_that_could_never_pass(limit: RateLimit | WindowLimit, cost: float) -> None:
    """A cost above the burst or the quota is a ConfigurationError with both numbers."""
    with pytest.raises(ConfigurationError) as failure:
        QuotaRule("small", limit).charge(spec_of("report", cost=cost))
    assert str(failure.value) == (
        f"Tool 'report' costs {cost:g}, more than quotas.rules.small ever allows ({limit}): "
        "raise the limit or lower the cost"
    )


@pytest.mark.parametrize("limit", [RateLimit(1.0, 2.0), WindowLimit(2, "minute")])
def test_a_call_may_take_everything(limit: RateLimit | WindowLimit) -> None:
    """A cost equal to the burst or the quota is valid."""
    charge = QuotaRule("small", limit).charge(spec_of("report", cost=2.0))
    assert charge.cost == charge.capacity


@pytest.mark.parametrize(
    "limit",
    [
        RateLimit(0.0, 1.0),
        RateLimit(-1.0, 1.0),
        RateLimit(1.0, 0.0),
        RateLimit(math.nan, 1.0),
        RateLimit(1.0, math.inf),
        RateLimit(0.123457, 1e12),
        WindowLimit(0, "day"),
        WindowLimit(math.nan, "day"),
        WindowLimit(math.inf, "day"),
        WindowLimit(1e15, "day"),
    ],
)
def test_numbers_that_cannot_be_counted(limit: RateLimit | WindowLimit) -> None:
    """Limits that are invalid or too precise are rejected."""
    assert limit.fault()


@pytest.mark.parametrize(
    "limit",
    [RateLimit(1e-6, 1.0), RateLimit(1 / 3, 1000.0), RateLimit(100_000.0, 1e6), WindowLimit(1e9, "day"), RATE],
)
def test_numbers_that_can(limit: RateLimit | WindowLimit) -> None:
    """Usual limits fit into the exact range of floating point."""
    assert limit.fault() is None
    charge = limit.charge("rule", 1.0)
    assert charge is not None
    assert charge.capacity + charge.cost <= 2**53


@pytest.mark.parametrize("written", [0.1, 0.7, 33.333, 1.5, 99_999.0, 0.000001])
def test_rates_are_exact(written: float) -> None:
    """Rates of up to six decimals are exact."""
    assert str(float(RateLimit(written, 1.0).rate)) == str(written)


@pytest.mark.parametrize(("cost", "counted"), [(1.0, 1000), (0.1, 100), (1 / 3, 334), (0.00001, 1), (2.5, 2500)])
def test_costs_count_in_thousandths(cost: float, counted: int) -> None:
    """A cost is counted exactly, rounded up to thousandths."""
    charge = WindowLimit(10, "day").charge("rule", cost)
    assert charge is not None
    assert charge.cost == counted


def test_a_limit_in_words() -> None:
    """The text of a limit has plain numbers."""
    assert str(RATE) == "50 per second, 100 at once"
    assert str(WindowLimit(1_000_000, "day")) == "1000000 per day"
