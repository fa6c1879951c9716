"""The metrics page: values, and bounded labels."""

import asyncio
from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_core import Context, ITool, NoArguments, ToolError, ToolRegistry, prompt, resource, tool
from axolotl_core.content import TextContent, ToolResult
from axolotl_core.errors import Overloaded
from axolotl_core.policies.tool_rules import Breaker
from axolotl_server.observation.metrics import BUCKETS
from tests.support.endless_tools import Stuck
from tests.support.peers.memory_peer import Peer, container_with
from tests.support.peers.session_client import Client
from tests.support.peers.wire import META, call, message, mirrored
from tests.support.servers.observed_server import SECRET, Scraped, Watched, watched
from tests.support.servers.serving import until
from tests.support.tools import Echo, Probe, container_of

DURATION = "mcp_server_operation_duration_seconds_count"


@tool
async def fail() -> str:
    """Fail."""
    raise ValueError(SECRET)


@tool
async def tell() -> str:
    """Tell what went wrong."""
    raise ToolError(SECRET)


@tool
async def answer_error() -> ToolResult:
    """Return a result that is an error."""
    return ToolResult((TextContent("no"),), is_error=True)


@tool
async def answer_lookalike() -> dict[str, bool]:
    """Return content that looks like an error but is not."""
    return {"isError": True}


@tool
async def refuse() -> str:
    """Reject the call."""
    raise Overloaded("later", 1)


@tool(breaker=Breaker(failures=1, open_seconds=1000))
async def brittle() -> str:
    """Fail, behind a circuit breaker."""
    raise ValueError


@prompt
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Dear {name}"


@resource("note://{number}")
async def note(number: int) -> str:
    """Give a note."""
    return "note"


def everything() -> containers.DynamicContainer:
    tools = (Echo(), fail, tell, answer_error, answer_lookalike, refuse)
    return container_with(tools, (greet,), (note,))


async def ask(seen: Watched, method: str, params: dict[str, Any], name: str | None = None) -> Any:
    body = message(method, {**params, "_meta": META})
    return (await seen.http.post(seen.server.url, content=body, headers=mirrored(method, name))).json()


async def use(seen: Watched, name: str, **arguments: Any) -> Any:
    return await ask(seen, "tools/call", {"name": name, "arguments": arguments}, name)


def operations(page: Scraped, **labels: str) -> float:
    return page.value(DURATION, **labels)


async def test_operations_are_counted_by_how_they_ended() -> None:
    """Each request is in the histogram once, with its method, feature and error."""
    async with watched(everything()) as seen:
        for _ in range(3):
            await use(seen, "echo", text="a")
        await use(seen, "echo", txt="a")
        for name in ("fail", "tell", "answer_error", "answer_lookalike"):
            await use(seen, name)
        await ask(seen, "prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}, "greet")
        await ask(seen, "resources/read", {"uri": "note://7"}, "note://7")
        await ask(seen, "resources/read", {"uri": "note://x"}, "note://x")
        await ask(seen, "tools/list", {})
        page = await seen.scrape()
    assert operations(page, gen_ai_tool_name="echo") == 4
    assert operations(page, gen_ai_tool_name="echo", error_type="tool_error") == 1
    for name, error in (("fail", 1), ("tell", 1), ("answer_error", 1), ("answer_lookalike", 0)):
        assert operations(page, gen_ai_tool_name=name) == 1
        assert operations(page, gen_ai_tool_name=name, error_type="tool_error") == error
    assert operations(page, gen_ai_prompt_name="greet") == 1
    assert operations(page, mcp_resource_uri="note://{number}") == 2
    assert operations(page, mcp_resource_uri="note://{number}", rpc_response_status_code="-32602") == 1
    assert operations(page, mcp_method_name="tools/list", network_transport="tcp") == 1
    assert operations(page) == 12
    assert operations(page, mcp_protocol_version="2026-07-28") == 12
    assert operations(page, gen_ai_operation_name="execute_tool", mcp_method_name="tools/call") == 8
    assert SECRET not in page.text


async def test_calls_are_counted_by_their_outcome() -> None:
    """Calls are counted by their audit outcome."""
    async with watched(everything()) as seen:
        await use(seen, "echo")
        await use(seen, "echo", text=4)
        for name in ("fail", "tell", "refuse"):
            await use(seen, name)
        page = await seen.scrape()
    outcomes = {"echo": ("ok", "invalid_arguments"), "fail": ("failed",), "tell": ("error",), "refuse": ("overloaded",)}
    for name, expected in outcomes.items():
        for outcome in expected:
            assert page.value("axolotl_calls_total", kind="tool", name=name, outcome=outcome) == 1
    assert page.value("axolotl_calls_total") == 5


async def test_denials_are_counted() -> None:
    """Calls that a rule or a quota rejects are counted separately, with registered names."""
    probe = Probe()
    probe.release.set()
    rules = [{"name": "x", "effect": "deny", "what": {"names": ["echo"]}}]
    sections: dict[str, Any] = {
        "authorization": {"rules": rules, "default": "allow"},
        "quotas": {"rules": {"few": {"limit": 1, "window": "day", "tools": ["probe"]}}},
    }
    async with watched(container_of(Echo(), probe), **sections) as seen:
        for name in ("echo", "probe", "probe"):
            await use(seen, name)
        page = await seen.scrape()
    assert page.value("axolotl_calls_total", name="echo", outcome="denied") == 1
    assert page.value("axolotl_calls_total", name="probe", outcome="quota") == 1
    assert page.value("axolotl_calls_total", name="probe", outcome="ok") == 1
    assert operations(page, gen_ai_tool_name="echo", rpc_response_status_code="-32602") == 1


async def test_names_from_the_wire_make_no_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of unknown names of tools, prompts, resources and methods share one label each."""
    monkeypatch.setattr("axolotl_server.host.STALL_SECONDS", 60)
    async with watched(everything()) as seen:
        peer = Peer(seen.server.host)
        before = len((await seen.scrape()).text.splitlines())
        for number in range(1250):
            made_up = f"{SECRET}-{number}"
            await peer.ask("tools/call", {"name": made_up, "arguments": {}})
            await peer.ask("prompts/get", {"name": made_up})
            await peer.ask("resources/read", {"uri": f"{made_up}://x"})
            await peer.ask(made_up)
        await peer.close()
        page = await seen.scrape()
    assert operations(page, gen_ai_tool_name="_unknown", error_type="-32602") == 1250
    assert operations(page, gen_ai_prompt_name="_unknown", error_type="-32602") == 1250
    assert operations(page, mcp_resource_uri="_unknown", error_type="-32602") == 1250
    assert operations(page, mcp_method_name="_unknown", error_type="-32601") == 1250
    assert SECRET not in page.text
    series_lines = len(BUCKETS) + 3
    assert len(page.text.splitlines()) <= before + 4 * series_lines + 5


async def test_a_registered_name_is_used_whatever_was_wrong() -> None:
    """A request that fails before its feature runs is counted with the registered name."""
    async with watched(everything()) as seen:
        await ask(seen, "tools/call", {"name": "echo", "arguments": []}, "echo")
        await ask(seen, "prompts/get", {"name": "greet", "arguments": {"name": 4}}, "greet")
        page = await seen.scrape()
    assert operations(page, gen_ai_tool_name="echo", error_type="-32602") == 1
    assert operations(page, gen_ai_prompt_name="greet", error_type="-32602") == 1


async def test_what_comes_to_no_method_is_counted() -> None:
    """Requests that the revision rejects are counted as failed operations."""
    async with watched(everything()) as seen:
        body = message("tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "1999-01-01"}})
        await seen.http.post(seen.server.url, content=body, headers=mirrored("tools/list"))
        wrong = await seen.http.post(seen.server.url, content=call("echo"), headers=mirrored(name="other"))
        assert wrong.status_code == 400
        page = await seen.scrape()
    assert operations(page, mcp_method_name="tools/list") == 1
    assert operations(page, mcp_method_name="tools/call", error_type="-32020") == 1
    assert operations(page) == 2


async def test_calls_that_run_and_wait_are_seen() -> None:
    """Running, waiting and rejected calls, and waiting times, are counted."""
    probe = Probe()
    probe.max_concurrency, probe.queue_limit, probe.queue_timeout_seconds = 1, 1, 20.0
    async with watched(container_of(probe)) as seen:
        peer = Peer(seen.server.host)
        peer.call("probe", id="runs")
        await probe.started.wait()
        peer.call("probe", id="waits")
        await until(lambda: len(seen.server.host.handler.inflight) == 2)
        peer.call("probe", id="refused")
        assert (await peer.receive())["id"] == "refused"
        page = await seen.scrape()
        assert page.value("axolotl_calls_in_flight") == 2
        assert page.value("axolotl_calls_waiting") == 1
        assert page.value("axolotl_calls_shed_total", limit="concurrency") == 1
        assert page.value("axolotl_calls_total", name="probe", outcome="overloaded") == 1
        probe.release.set()
        await peer.close()
        page = await seen.scrape()
    assert page.value("axolotl_calls_in_flight") == 0
    assert page.value("axolotl_call_queue_duration_seconds_count", kind="tool", name="probe") == 1


async def test_a_full_server_is_seen() -> None:
    """Calls that a full server rejects are counted."""
    probe = Probe()
    async with watched(container_of(probe), limits={"max_inflight": 1}) as seen:
        peer = Peer(seen.server.host)
        peer.call("probe", id=1)
        await probe.started.wait()
        await use(seen, "probe")
        page = await seen.scrape()
        probe.release.set()
        await peer.close()
    assert page.value("axolotl_calls_shed_total", limit="in_flight") == 1
    assert operations(page, gen_ai_tool_name="probe", error_type="tool_error") == 1


async def test_breakers_are_seen() -> None:
    """Open breakers and their rejections are counted."""
    async with watched(container_of(brittle)) as seen:
        await use(seen, "brittle")
        await use(seen, "brittle")
        page = await seen.scrape()
    assert page.value("axolotl_circuits_open", name="brittle") == 1
    assert page.value("axolotl_calls_shed_total", limit="circuit") == 1


async def test_code_that_was_left_behind_is_seen() -> None:
    """An abandoned operation is counted once, and its code until it ends."""
    stuck = Stuck()
    async with watched(container_of(stuck)) as seen:
        await use(seen, "stuck")
        page = await seen.scrape()
        assert page.value("axolotl_zombies", name="stuck") == 1
        assert operations(page, gen_ai_tool_name="stuck", error_type="tool_error") == 1
        stuck.release.set()
        await stuck.ended.wait()
        await until(lambda: not len(seen.server.host.handler.inflight.zombies))
        page = await seen.scrape()
    assert page.value("axolotl_zombies", name="stuck") == 0
    assert page.value("axolotl_zombies_left_total") == 1
    assert operations(page) == 1
    assert page.value("axolotl_calls_total", name="stuck", outcome="abandoned") == 1
    assert page.value("axolotl_calls_total") == 1


async def test_a_cancelled_call_is_told_apart() -> None:
    """A canceled call is neither a success nor a tool error."""
    probe = Probe()
    async with watched(container_of(probe)) as seen:
        peer = await Peer(seen.server.host).shake_hands()
        peer.call("probe", id=7)
        await probe.started.wait()
        peer.cancel(7)
        await probe.cancelled.wait()
        await peer.close()
        page = await seen.scrape()
    assert operations(page, gen_ai_tool_name="probe", error_type="cancelled", network_transport="pipe") == 1
    assert page.value("axolotl_calls_total", name="probe", outcome="cancelled") == 1


async def test_sessions_and_refusals_are_seen() -> None:
    """Sessions, their durations, and rejected requests are counted."""
    async with watched(container_of(Echo())) as seen:
        client = Client(seen.http, seen.server.url)
        await client.begin()
        page = await seen.scrape()
        assert page.value("axolotl_sessions") == 1
        await client.end()
        assert (await client.post(call("echo", handshake=True))).status_code == 404
        assert (await seen.http.get(f"{seen.root}/elsewhere")).status_code == 404
        page = await seen.scrape()
    assert page.value("axolotl_sessions") == 0
    assert page.value("mcp_server_session_duration_seconds_count", mcp_protocol_version="2025-11-25") == 1
    assert page.value("axolotl_http_refusals_total", status="404") == 1


async def test_subscriptions_are_seen() -> None:
    """Open subscriptions are counted."""
    container = containers.DynamicContainer()
    container.tool_registry = providers.Object(ToolRegistry())
    async with watched(container) as seen:
        peer = Peer(seen.server.host)
        peer.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await peer.hear("notifications/subscriptions/acknowledged")
        assert (await seen.scrape()).value("axolotl_subscriptions") == 1
        await peer.close()
        page = await seen.scrape()
    assert page.value("axolotl_subscriptions") == 0
    assert operations(page, mcp_method_name="subscriptions/listen") == 1


async def test_calls_from_threads_wait_for_one() -> None:
    """Calls that wait for a thread are counted."""
    release, started = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    class Blocking(ITool[NoArguments, str]):
        name = "blocking"
        execution = "thread"

        async def execute(self, arguments: NoArguments, context: Context) -> str:
            loop.call_soon_threadsafe(started.set)
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(release.wait(), loop))
            return "done"

    async with watched(container_of(Blocking()), limits={"threads": 1}) as seen:
        peer = Peer(seen.server.host)
        peer.call("blocking", id=1)
        peer.call("blocking", id=2)
        await started.wait()
        await until(lambda: len(seen.server.host.handler.inflight) == 2)
        assert (await seen.scrape()).value("axolotl_threads_waiting") == 1
        release.set()
        await peer.close()
        assert (await seen.scrape()).value("axolotl_threads_waiting") == 0
