"""Lists show exactly what the caller may use."""

import json
from typing import Any, Literal

import pytest
from dependency_injector import providers
from hypothesis import HealthCheck, given, settings

from axolotl_core import CacheHint, Context, Principal, ToolRegistry, resource, tool
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.policies.access import Decision
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server import ServerHost
from axolotl_server.access.rules import DefaultAuthorizer
from axolotl_server.protocol.eras.era import IEra
from tests.support.servers.restricted_servers import (
    ADA,
    GUESTS,
    ROOT,
    TOOLS,
    Speaker,
    look,
    offering,
    principals,
    rule_lists,
    speaking,
)

pytestmark = pytest.mark.slow

ERAS = pytest.mark.parametrize("handshake", [True, False], ids=["handshake", "stateless"])
NUMBERED = [tool(name=f"tool_{number}", tags=frozenset({str(number % 3)}))(look.function) for number in range(20)]
THIRD = {"rules": [{"name": "third", "effect": "allow", "what": {"tags": ["0"]}}]}
ARGUMENTS = {"refund": {"amount": 1}}


@ERAS
async def test_each_list(handshake: bool) -> None:
    """Tools, prompts, resources and templates are listed to allowed callers."""
    async with ServerHost(offering(), flags={"authorization": GUESTS}) as host:
        seen: dict[str, list[list[str]]] = {}
        for principal in (ADA, ROOT):
            speaker = Speaker(host, principal)
            if handshake:
                await speaker.shake_hands()
            kinds = ("tools", "prompts", "resources", "resources/templates")
            seen[principal.subject] = [await speaker.listed(kind) for kind in kinds]
            await speaker.close()
    assert seen["ada"] == [["look"], ["greet"], ["notes://open"], ["files://{+path}"]]
    assert seen["root"] == [
        ["look", "refund", "note", "refurbish"],
        ["greet", "grieve"],
        ["notes://open", "notes://closed"],
        ["files://{+path}", "vault://{name}"],
    ]


async def usable(speaker: Speaker) -> list[list[str]]:
    """Try everything and return what is not denied."""

    async def works(method: str, **params: Any) -> bool:
        return "result" in await speaker.ask(method, params)

    tools = ["look", "refund", "note", "refurbish"]
    resources = ["notes://open", "notes://closed"]
    templates = {"files://{+path}": "files://a", "vault://{name}": "vault://a"}
    return [
        [one for one in tools if await works("tools/call", name=one, arguments=ARGUMENTS.get(one, {}))],
        [one for one in ("greet", "grieve") if await works("prompts/get", name=one)],
        [one for one in resources if await works("resources/read", uri=one)],
        [one for one, uri in templates.items() if await works("resources/read", uri=uri)],
    ]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(rule_lists, principals)
async def test_lists_agree_with_calls(rules: list[dict[str, Any]], principal: Principal) -> None:
    """With any policy and in both eras, listed features are exactly the usable ones."""
    async with ServerHost(offering(), flags={"authorization": {"rules": rules}}) as host:
        for handshake in (True, False):
            speaker = Speaker(host, principal)
            if handshake:
                await speaker.shake_hands()
            kinds = ("tools", "prompts", "resources", "resources/templates")
            assert [await speaker.listed(kind) for kind in kinds] == await usable(speaker)
            await speaker.close()


@ERAS
@pytest.mark.parametrize("page_size", [1, 2, 3, 7, 100])
async def test_pages(page_size: int, handshake: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are full, and together they form the list."""
    monkeypatch.setattr("axolotl_server.features.catalogue.PAGE_SIZE", page_size)
    async with speaking(THIRD, handshake=handshake, container=offering(tools=NUMBERED)) as speaker:
        names = [f"tool_{number}" for number in range(0, 20, 3)]
        assert await speaker.listed("tools") == names
        first = (await speaker.ask("tools/list"))["result"]
        assert len(first["tools"]) == min(page_size, 7)
        assert ("nextCursor" in first) is (page_size < 7)


async def test_a_cursor_is_good_for_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cursor also works for a caller who sees another part of the list, and after a change."""
    registry = ToolRegistry(NUMBERED)
    container = offering(tools=[])
    container.tool_registry = providers.Object(registry)
    rules = [*GUESTS["rules"], *THIRD["rules"]]
    monkeypatch.setattr("axolotl_server.features.catalogue.PAGE_SIZE", 2)
    flags = {"authorization": {"rules": rules}}
    async with ServerHost(container, flags=flags) as host:
        ada, root = Speaker(host, ADA), Speaker(host, ROOT)
        cursor = {"cursor": (await ada.ask("tools/list"))["result"]["nextCursor"]}
        assert [one["name"] for one in (await root.ask("tools/list", cursor))["result"]["tools"]] == [
            "tool_4",
            "tool_5",
        ]
        registry.unregister_range(["tool_3", "tool_6"])
        assert [one["name"] for one in (await ada.ask("tools/list", cursor))["result"]["tools"]] == [
            "tool_9",
            "tool_12",
        ]
        registry.register(tool(name="tool_new", tags=frozenset({"0"}))(look.function))
        assert (await ada.listed("tools"))[-1] == "tool_new"
        wrong = await ada.ask("tools/list", {"cursor": "wrong"})
        assert wrong["error"]["code"] == -32602
        await ada.close()
        await root.close()


def era_of(host: ServerHost) -> IEra:
    eras: Any = host.handler._eras
    era: IEra = eras.stateless
    return era


async def test_equal_profiles_are_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Principals that the rules treat alike share a view, which is decided once."""
    judge, judged = DefaultAuthorizer.judge, []

    def count(policy: DefaultAuthorizer, principal: Principal, spec: FeatureSpec) -> Decision:
        judged.append(principal.subject)
        return judge(policy, principal, spec)

    monkeypatch.setattr(DefaultAuthorizer, "judge", count)
    flags = {"authorization": {"rules": [*GUESTS["rules"], *THIRD["rules"]]}}
    async with ServerHost(offering(tools=NUMBERED), flags=flags) as host:
        catalogue, era = host.assembly.tools, era_of(host)
        first = await catalogue.page(era, None, ADA)
        for principal in (ADA, Principal("bob"), ANONYMOUS, Principal("eve", "acme", frozenset({"x"}))):
            assert await catalogue.page(era, None, principal) == first
        other = await catalogue.page(era, None, ROOT)
        assert other != first
        assert other == await catalogue.page(era, None, Principal("carol", roles=frozenset({"admin"})))
        assert await catalogue.page(era, None, ADA) == first
        assert len(catalogue._shown[1]._views) == 2
    assert judged == ["ada"] * 20 + ["root"] * 20


async def test_scopes_tell_readers_apart() -> None:
    """Callers with equal profiles but different scopes get different lists."""
    plain, scoped = NUMBERED[0], tool(name="scoped", scopes=frozenset({"x"}))(look.function)
    async with ServerHost(offering(tools=[plain, scoped]), flags={"authorization": {"default": "allow"}}) as host:
        for scopes, expected in (({"y"}, 1), ({"x"}, 2), ({"y"}, 1), ({"x", "y"}, 2)):
            page = await host.assembly.tools.page(era_of(host), None, Principal("ada", scopes=frozenset(scopes)))
            assert len(json.loads(page)["tools"]) == expected


async def test_the_views_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many principals or views do not grow the caches without limit."""
    rules = [
        {"name": one.name, "effect": "allow", "who": {"roles": [one.name]}, "what": {"names": [one.name]}}
        for one in NUMBERED
    ]
    monkeypatch.setattr("axolotl_server.features.catalogue.PAGE_SIZE", 2)
    flags = {"authorization": {"rules": rules}}
    async with ServerHost(offering(tools=NUMBERED), flags=flags) as host:
        catalogue, era = host.assembly.tools, era_of(host)
        for number in range(300):
            roles = frozenset(one.name for place, one in enumerate(NUMBERED) if number >> place % 9 & 1)
            page = await catalogue.page(era, None, Principal(str(number), roles=roles))
            assert len(json.loads(page)["tools"]) == min(2, len(roles))
        _, views = catalogue._shown
        assert 0 < len(views._views) <= 32
        assert 0 < len(views._by_profile) <= 1000


@pytest.mark.parametrize("principal", [ANONYMOUS, ADA])
async def test_results_are_private_with_a_policy(principal: Principal) -> None:
    """With a policy, lists and content are never cacheable by shared caches."""

    @resource("tariffs://all", cache=CacheHint(ttl_seconds=60, scope="public"))
    async def tariffs() -> str:
        return "free"

    public = {"scope": "public", "list_ttl_seconds": 30, "resource_ttl_seconds": 20}
    container = offering(resources=[tariffs, resource("plain://all")(tariffs.function)])
    async with speaking({"default": "allow"}, principal, container=container, caching=public) as speaker:
        for kind in ("tools", "prompts", "resources", "resources/templates"):
            result = (await speaker.ask(f"{kind}/list"))["result"]
            assert (result["cacheScope"], result["ttlMs"]) == ("private", 30_000)
        for uri, seconds in (("tariffs://all", 60), ("plain://all", 20)):
            result = (await speaker.ask("resources/read", {"uri": uri}))["result"]
            assert (result["cacheScope"], result["ttlMs"]) == ("private", seconds * 1000)


async def test_without_a_policy_nothing_changes() -> None:
    """Without a policy everything is visible and cacheable, and nothing is wrapped."""
    async with speaking({}, container=offering(tools=NUMBERED), caching={"scope": "public"}) as speaker:
        assert len(await speaker.listed("tools")) == 20
        assert (await speaker.ask("tools/list"))["result"]["cacheScope"] == "public"
    async with ServerHost(offering(tools=NUMBERED)) as host:
        era = era_of(host)
        assert await host.assembly.tools.page(era, None, ADA) == await host.assembly.tools.page(era, None, ANONYMOUS)


@pytest.mark.parametrize("execution", ["loop", "thread"])
@ERAS
async def test_visible_tools(execution: Literal["loop", "thread"], handshake: bool) -> None:
    """A tool that lists tools shows each caller what `tools/list` shows, without disabled tools."""

    @tool(execution=execution)
    async def visible(context: Context) -> list[str]:
        """List the tools of the caller."""
        return [one.name for one in await context.visible_tools()]

    rules = {"rules": [*GUESTS["rules"], {"name": "lists", "effect": "allow", "what": {"names": ["visible"]}}]}
    flags = {"authorization": rules, "tools": {"note": {"enabled": False}}}
    async with ServerHost(offering(tools=[*TOOLS, visible]), flags=flags) as host:
        for principal, expected in ((ADA, ["look", "visible"]), (ROOT, ["look", "refund", "refurbish", "visible"])):
            speaker = Speaker(host, principal)
            if handshake:
                await speaker.shake_hands()
            reply = await speaker.ask("tools/call", {"name": "visible", "arguments": {}})
            assert json.loads(reply["result"]["content"][0]["text"]) == expected == await speaker.listed("tools")
            await speaker.close()
