"""The in-process client for tests of servers."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import CacheHint, Completion, InvalidArguments
from axolotl_core.calls.cancellation import CancelReason
from axolotl_server import InProcessClient, RemoteError, ServerHost, connect
from axolotl_server.client.replies import (
    Change,
)
from tests.support.scenarios.client_container import Container, greeting
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import Probe

TOOLS_CHANGED = Change("notifications/tools/list_changed")


@greeting.completes("name")
def names(value: str, known: Mapping[str, str]) -> Completion:
    """Suggest names, and what is known already."""
    return Completion([f"{value}nn", *known.values()], total=7, has_more=True)


async def test_lists_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages of a list are read."""
    monkeypatch.setattr("axolotl_server.features.catalogue.PAGE_SIZE", 1)
    async with connect(Container()) as client:
        assert len(await client.list_tools()) == 10
        assert [one["name"] for one in await client.list_prompts()] == ["greeting", "demanding"]
        assert [one["uri"] for one in await client.list_resources()] == ["config://app", "sizes://mine"]
        assert [one["uriTemplate"] for one in await client.list_resource_templates()] == ["pages://{number}"]


async def test_prompt() -> None:
    """A prompt returns its messages."""
    async with connect(Container()) as client:
        outcome = await client.get_prompt("greeting", {"name": "Ann"})
    assert [message["role"] for message in outcome.messages] == ["user", "assistant"]
    assert outcome.text == "Greet Ann, warm.\nGladly."
    assert outcome.description is None
    assert outcome.meta


async def test_prompt_refused() -> None:
    """Invalid arguments raise an error with the server's message."""
    async with connect(Container()) as client:
        with pytest.raises(RemoteError, match="tone") as caught:
            await client.get_prompt("greeting", {"name": "Ann", "tone": "hot"})
    assert caught.value.code == -32602


async def test_resource() -> None:
    """A resource returns its text and cache hints."""
    async with connect(Container()) as client:
        outcome = await client.read_resource("config://app")
    assert outcome.text == '{"port":8000}'
    assert outcome.blobs == []
    assert outcome.cache == CacheHint(1.5, "public")


async def test_resource_of_a_template() -> None:
    """Several contents are returned, with bytes decoded."""
    async with connect(Container()) as client:
        outcome = await client.read_resource("pages://7")
    assert (outcome.text, outcome.blobs) == ("page 7", [b"\x00\xff"])
    assert [content["uri"] for content in outcome.contents] == ["pages://7", "pages://7/picture"]


async def test_missing_resource() -> None:
    """An unknown URI is an error that names it."""
    async with connect(Container()) as client:
        with pytest.raises(RemoteError) as caught:
            await client.read_resource("nowhere://at/all")
    assert caught.value.data == {"uri": "nowhere://at/all"}


async def test_completion() -> None:
    """Arguments of prompts and variables of templates are completed."""
    async with connect(Container()) as client:
        known = {"tone": "cold"}
        assert await client.complete("name", "A", prompt="greeting", known=known) == Completion(
            ["Ann", "cold"], 7, True
        )
        assert (await client.complete("tone", prompt="greeting")).values == ["warm", "cold"]
        assert (await client.complete("number", "1", template="pages://{number}")).values == []


@pytest.mark.parametrize("named", [{}, {"prompt": "greeting", "template": "pages://{number}"}])
async def test_completion_of_nothing(named: dict[str, Any]) -> None:
    """Completion needs a prompt or a template."""
    async with connect(Container()) as client:
        with pytest.raises(ValueError, match="Give either a prompt or a template"):
            await client.complete("name", **named)


async def test_progress_and_log() -> None:
    """Progress and log messages of all levels arrive before the result."""
    heard: list[Mapping[str, Any]] = []
    async with connect(Container()) as client:
        assert (await client.call("talk", on_progress=heard.append, on_log=heard.append)).text == "said"
    told = [{key: value for key, value in params.items() if key != "progressToken"} for params in heard]
    assert told == [
        {"level": "debug", "data": {"step": 1}, "logger": "talker"},
        {"progress": 1, "total": 2, "message": "half"},
        {"level": "error", "data": "two"},
        {"progress": 2, "total": 2},
    ]


async def test_nothing_is_told_unasked() -> None:
    """A client that requests only progress gets no log messages."""
    heard: list[Mapping[str, Any]] = []
    async with connect(Container()) as client:
        await client.call("talk", on_progress=heard.append)
    assert [params["progress"] for params in heard] == [1, 2]


async def test_messages_belong_to_their_call() -> None:
    """Concurrent calls receive only their own messages."""
    heard: list[list[Mapping[str, Any]]] = [[], [], []]
    async with connect(Container()) as client:
        await asyncio.gather(*(client.call("talk", on_log=one.append) for one in heard))
    assert [[params["data"] for params in one] for one in heard] == [[{"step": 1}, "two"]] * 3


async def test_own_meta() -> None:
    """A request can have its own `_meta`."""
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with connect(Container()) as client:
        params = {"name": "trace", "arguments": {}, "_meta": {"traceparent": parent}}
        result = await client.request("tools/call", params)
        assert (await client.call("trace")).text == "none"
    assert result["content"][0]["text"] == parent


async def test_failing_listener() -> None:
    """An exception of a callback is raised by the call, which is canceled."""

    def fail(params: Mapping[str, Any]) -> None:
        raise InvalidArguments("enough")

    container = Container()
    container.probe.override(providers.Singleton(Probe, progress=True))
    async with connect(container) as client:
        with pytest.raises(InvalidArguments, match="enough"):
            await client.call("probe", on_progress=fail)
        assert container.probe().cancelled.is_set()


async def test_concurrent_calls() -> None:
    """A waiting call does not block others."""
    container = Container()
    async with connect(container) as client:
        waiting = asyncio.ensure_future(client.call("probe"))
        await container.probe().started.wait()
        assert (await client.call("talk")).text == "said"
        assert not waiting.done()
        container.probe().release.set()
        assert (await waiting).text == "done"


async def test_cancellation() -> None:
    """Canceling the asyncio task cancels only its own call, like a client on the wire."""
    container = Container()
    async with connect(container) as client:
        waiting = asyncio.ensure_future(client.call("probe"))
        await container.probe().started.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        probe = container.probe()
        assert probe.cancelled.is_set()
        assert probe.context is not None
        assert probe.context.cancel_reason is CancelReason.CLIENT
        assert (await client.call("talk")).text == "said"


async def test_timeout() -> None:
    """A call can be stopped with asyncio timeouts."""
    container = Container()
    async with connect(container) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await client.call("probe")


async def test_close_ends_calls() -> None:
    """Closing the client ends all calls."""
    container = Container()
    before = asyncio.all_tasks()
    async with ServerHost(container) as host:
        client = InProcessClient(host.handler)
        waiting = asyncio.ensure_future(client.call("probe"))
        await container.probe().started.wait()
        await client.close()
        with pytest.raises(ConnectionError, match="closed before the server answered"):
            await waiting
        with pytest.raises(ConnectionError, match="The client is closed"):
            await client.list_tools()
        assert container.probe().cancelled.is_set()
        assert not host.handler.inflight
        await until(lambda: asyncio.all_tasks() == before)


async def test_listening() -> None:
    """List changes are delivered until the block ends."""
    async with ServerHost(Container()) as host:
        client = InProcessClient(host.handler)
        async with asyncio.timeout(PATIENCE_SECONDS), client.listen() as changes:
            assert set(changes.accepted) == {"toolsListChanged", "promptsListChanged", "resourcesListChanged"}
            host.registry.unregister("talk")
            assert await anext(changes) == TOOLS_CHANGED
            host.roles.prompt_registry.unregister("greeting")
            assert await anext(changes) == Change("notifications/prompts/list_changed")
            host.roles.resource_registry.unregister("config://app")
            assert await anext(changes) == Change("notifications/resources/list_changed")
        host.registry.unregister("order")
        with pytest.raises(StopAsyncIteration):
            await anext(changes)
        await client.close()


async def test_listening_to_resources() -> None:
    """A subscription to resources delivers only their updates."""
    async with ServerHost(Container()) as host:
        client = InProcessClient(host.handler)
        async with asyncio.timeout(PATIENCE_SECONDS), client.listen("config://app", lists=()) as changes:
            host.registry.unregister("talk")
            host.roles.resource_registry.updated("sizes://mine")
            host.roles.resource_registry.updated("config://app")
            assert await anext(changes) == Change("notifications/resources/updated", "config://app")
        await client.close()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_listening_to_a_parent(revision: str) -> None:
    """Who watches a parent is notified of the resources below it, and of no others."""
    async with ServerHost(Container()) as host:
        client = InProcessClient(host.handler, revision=revision)
        async with asyncio.timeout(PATIENCE_SECONDS), client.listen("config://app", lists=()) as changes:
            host.roles.resource_registry.updated("config://application")
            host.roles.resource_registry.updated("config://app/theme/color")
            assert await anext(changes) == Change("notifications/resources/updated", "config://app/theme/color")
        await client.close()


async def test_listening_and_calling() -> None:
    """A client can call during subscriptions, and have several of them."""
    async with ServerHost(Container()) as host:
        client = InProcessClient(host.handler)
        async with asyncio.timeout(PATIENCE_SECONDS), client.listen() as first, client.listen() as second:
            assert (await client.call("talk")).text == "said"
            host.registry.unregister("talk")
            assert [await anext(first), await anext(second)] == [TOOLS_CHANGED] * 2
        await client.close()


async def test_listening_ends_with_the_client() -> None:
    """Closing the client ends the iteration without an error."""
    async with ServerHost(Container()) as host:
        client = InProcessClient(host.handler)
        entered = asyncio.Event()

        async def collect() -> list[Change]:
            async with client.listen() as changes:
                entered.set()
                return [change async for change in changes]

        collecting = asyncio.ensure_future(collect())
        await entered.wait()
        await client.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await collecting == []


async def test_refused_listener() -> None:
    """If the server rejects a subscription, an error is raised."""
    async with connect(Container(), settings={"subscriptions": {"maximum": 1}}) as client, client.listen():
        with pytest.raises(RemoteError, match="Too many subscriptions"):
            async with client.listen():
                pass
