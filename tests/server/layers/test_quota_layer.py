"""The quota layer: matching rules, rejections, and no cost without rules."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_core import ConfigurationError, Principal, prompt, resource
from axolotl_core.errors import QuotaExceeded
from axolotl_core.features.spec import Limits, ToolSpec
from axolotl_core.layers import Call
from axolotl_core.policies.quota import Claim, IQuotaStore, QuotaRefusal, QuotaRule, RateLimit, WindowLimit
from axolotl_server import InProcessClient, RemoteError, ServerHost, connect
from axolotl_server.layers.quota import QuotaLayer
from axolotl_server.stores.quotas import MemoryQuotaStore
from tests.support.stores.quota_stores import Clock
from tests.support.tools import Echo, Probe, container_of

ADA, BOB = Principal("ada"), Principal("bob")
TWICE = WindowLimit(2, "day")


def layer_of(*rules: QuotaRule, clock: Clock | None = None) -> QuotaLayer:
    return QuotaLayer(MemoryQuotaStore(1000, clock or Clock()), rules)


def named(name: str, cost: float = 1.0) -> Echo:
    tool = Echo()
    tool.name, tool.cost = name, cost
    return tool


async def innermost(call: Call) -> Any:
    return call.principal.subject


def spec_of(tool: Echo) -> ToolSpec:
    return ToolSpec.of(tool, Limits(1.0, None, "loop", False), "set")


async def passes(client: InProcessClient, name: str = "echo") -> bool:
    return not (await client.call(name, {"text": "x"})).is_error


async def test_a_rejection_names_the_rule_and_the_retry_time() -> None:
    """A rejection by a rate names the rule, its numbers and when to retry."""
    clock = Clock()
    layer = layer_of(QuotaRule("per-user", RateLimit(0.4, 2.0), frozenset({"principal"})), clock=clock)
    async with connect(container_of(Echo(), layers=[layer]), principal=ADA) as client:
        assert [await passes(client) for _ in range(2)] == [True, True]
        refused = await client.call("echo", {"text": "x"})
        assert refused.is_error
        assert refused.text == (
            "Too many calls: the limit 'per-user' is 0.4 per second, 2 at once; try again in 3 seconds"
        )
        assert refused.meta["axolotl/reason"] == "quota"
        assert refused.meta["axolotl/rule"] == "per-user"
        assert refused.meta["axolotl/retryAfterMs"] == 2500
        clock.now += 2_500_000
        assert await passes(client)


@pytest.mark.parametrize(
    ("window", "words", "milliseconds"),
    [("minute", "60 seconds", 60_000), ("hour", "60 minutes", 3_600_000), ("day", "16 hours", 57_600_000)],
)
async def test_a_quota_that_is_used_up(window: Any, words: str, milliseconds: int) -> None:
    """A rejection by a quota tells the start of the next minute, hour or day."""
    layer = layer_of(QuotaRule("daily", WindowLimit(2, window)))
    async with connect(container_of(Echo(), layers=[layer])) as client:
        assert [await passes(client) for _ in range(2)] == [True, True]
        refused = await client.call("echo", {"text": "x"})
        assert refused.text == (f"The quota is used up: the limit 'daily' is 2 per {window}; try again in {words}")
        assert refused.meta["axolotl/retryAfterMs"] == milliseconds


@pytest.mark.parametrize(
    ("per", "apart"),
    [
        ((), set()),
        (("principal",), {"other subject", "other tenant"}),
        (("tenant",), {"other tenant"}),
        (("tool",), {"other tool"}),
        (("principal", "tool"), {"other subject", "other tenant", "other tool"}),
    ],
)
async def test_separate_and_shared_counts(per: Any, apart: set[str]) -> None:
    """Counts are separate per principal, tenant or tool if the rule says so, and shared otherwise."""
    others = {
        "other subject": (Principal("bob", tenant="acme"), "echo"),
        "other tenant": (Principal("ada", tenant="globex"), "echo"),
        "other tool": (Principal("ada", tenant="acme"), "other"),
    }
    for what, (principal, name) in others.items():
        layer = layer_of(QuotaRule("rule", TWICE, frozenset(per)))
        async with ServerHost(container_of(named("echo"), named("other"), layers=[layer])) as host:
            first = InProcessClient(host.handler, Principal("ada", tenant="acme"))
            assert [await passes(first) for _ in range(3)] == [True, True, False]
            assert await passes(InProcessClient(host.handler, principal), name) is (what in apart)


async def test_tool_sets_have_a_count() -> None:
    """The tools of a tool set share a count."""

    class First(containers.DeclarativeContainer):
        tools = providers.Object([named("a"), named("b")])

    class Second(containers.DeclarativeContainer):
        tools = providers.Object([named("c")])

    class Both(containers.DeclarativeContainer):
        tools = providers.Object([named("outside")])
        layers = providers.Object([layer_of(QuotaRule("sets", TWICE, frozenset({"toolset"})))])
        first = providers.Container(First)
        second = providers.Container(Second)

    async with connect(Both()) as client:
        assert [await passes(client, name) for name in ("a", "b", "a", "b")] == [True, True, False, False]
        assert [await passes(client, name) for name in ("c", "c", "c")] == [True, True, False]
        assert await passes(client, "outside")


async def test_only_features_of_a_rule_are_counted() -> None:
    """Only tools of a rule are counted, and prompts and resources only if the rule includes them."""

    @prompt
    async def greet() -> str:
        return "hello"

    @resource("docs://page")
    async def page() -> str:
        return "text"

    reports = QuotaRule("reports", TWICE, tools=("report.*",))
    reading = QuotaRule("reading", WindowLimit(1, "day"), kinds=frozenset({"prompt", "resource"}))
    container = container_of(named("report.day"), named("report.year"), Echo(), layers=[layer_of(reports, reading)])
    container.prompts = providers.Object([greet])
    container.resources = providers.Object([page])
    async with connect(container) as client:
        assert [await passes(client, name) for name in ("report.day", "REPORT.YEAR", "report.day")] == [
            True,
            True,
            False,
        ]
        assert [await passes(client) for _ in range(5)] == [True] * 5
        assert (await client.get_prompt("greet")).text == "hello"
        with pytest.raises(RemoteError, match="the limit 'reading'"):
            await client.read_resource("docs://page")


async def test_a_call_takes_its_cost() -> None:
    """A call uses its cost, which can be zero."""
    layer = layer_of(QuotaRule("budget", WindowLimit(10, "day")))
    tools = [named("dear", 4.0), named("cheap", 0.5), named("free", 0.0)]
    async with connect(container_of(*tools, layers=[layer])) as client:
        assert [await passes(client, name) for name in ("dear", "dear", "dear", "cheap", "dear")] == [
            True,
            True,
            False,
            True,
            False,
        ]
        assert [await passes(client, "cheap") for _ in range(4)] == [True, True, True, False]
        assert await passes(client, "free")


async def test_a_rejected_call_is_not_counted() -> None:
    """A call that one rule rejects does not count in other rules."""
    rules = QuotaRule("own", WindowLimit(1, "day"), frozenset({"principal"})), QuotaRule("all", WindowLimit(2, "day"))
    async with ServerHost(container_of(Echo(), layers=[layer_of(*rules)])) as host:
        ada, bob = InProcessClient(host.handler, ADA), InProcessClient(host.handler, BOB)
        assert [await passes(ada) for _ in range(5)] == [True, False, False, False, False]
        assert await passes(bob)


async def test_a_rejected_call_does_not_run() -> None:
    """A rejected call does not run."""
    probe = Probe()
    rule = QuotaRule("none", WindowLimit(1, "day"))
    async with connect(container_of(probe, Echo(), layers=[layer_of(rule)])) as client:
        assert await passes(client)
        assert (await client.call("probe")).is_error
        assert not probe.started.is_set()


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
async def test_an_invalid_cost(cost: float) -> None:
    """The server does not start with an invalid cost."""
    with pytest.raises(ConfigurationError, match=r"cost must be .*, not"):
        await ServerHost(container_of(named("echo", cost), layers=[layer_of()])).start()


async def test_a_cost_above_the_limit() -> None:
    """The server does not start if a cost exceeds a limit."""
    layer = layer_of(QuotaRule("small", RateLimit(10.0, 3.0)))
    with pytest.raises(ConfigurationError, match=r"Tool 'dear' costs 4, more than quotas\.rules\.small ever allows"):
        await ServerHost(container_of(named("dear", 4.0), layers=[layer])).start()


def test_a_feature_without_rules_is_not_wrapped() -> None:
    """A feature without rules is not wrapped."""
    spec = spec_of(named("echo"))
    assert layer_of().wrap(spec, innermost) is innermost
    assert layer_of(QuotaRule("other", TWICE, tools=("other",))).wrap(spec, innermost) is innermost
    assert layer_of(QuotaRule("all", TWICE)).wrap(spec_of(named("free", 0.0)), innermost) is innermost
    assert layer_of(QuotaRule("all", TWICE)).wrap(spec, innermost) is not innermost


def test_rules_that_match_nothing_are_reported() -> None:
    """Rules that match nothing are reported."""
    layer = layer_of(QuotaRule("right", TWICE, tools=("echo",)), QuotaRule("wrong", TWICE, tools=("ehco",)))
    layer.wrap(spec_of(named("echo")), innermost)
    assert [rule.name for rule in layer.idle] == ["wrong"]


class Noting(IQuotaStore):
    """Grants everything and records the claims."""

    def __init__(self) -> None:
        self.asked: list[Sequence[Claim]] = []

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        self.asked.append(claims)
        return None


async def test_one_question_a_call() -> None:
    """All rules of a call are checked in one step, each with the cost of the feature."""
    store = Noting()
    rules = [QuotaRule(name, limit) for name, limit in (("a", TWICE), ("b", RateLimit(1.0, 9.0)), ("c", TWICE))]
    invoke = QuotaLayer(store, rules).wrap(spec_of(named("echo", 2.0)), innermost)
    call = Call(principal=ADA, spec=spec_of(Echo()), raw=b"", task=asyncio.current_task())  # type: ignore[arg-type]
    assert await invoke(call) == "ada"
    [claims] = store.asked
    assert [charge.rule for _, charge in claims] == ["a", "b", "c"]
    assert len({key for key, _ in claims}) == 3
    assert [charge.cost / charge.capacity for _, charge in claims] == [1.0, 2 / 9, 1.0]


async def test_a_rejection_names_no_principal() -> None:
    """A rejection by a shared limit names no principal."""
    layer = layer_of(QuotaRule("all", WindowLimit(1, "day")), QuotaRule("own", TWICE, frozenset({"principal"})))
    spec = spec_of(named("echo"))
    invoke = layer.wrap(spec, innermost)
    first = Call(principal=Principal("secret-ada", tenant="secret-acme"), spec=spec, raw=b"", task=None)  # type: ignore[arg-type]
    second = Call(principal=BOB, spec=spec, raw=b"", task=None)  # type: ignore[arg-type]
    await invoke(first)
    with pytest.raises(QuotaExceeded) as failure:
        await invoke(second)
    assert "secret" not in f"{failure.value}{failure.value.meta}"
