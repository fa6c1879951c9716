"""Notifications of list and resource changes on a stream."""

import asyncio
import threading
from typing import Any

import pytest

from axolotl_core import PromptRegistry, ResourceRegistry, ToolRegistry, prompt, resource
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server import ServerHost
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.peers.wire import INITIALIZE, message
from tests.support.servers.serving import until
from tests.support.tools import Echo, container_of

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def fresh(name: str = "fresh") -> SchemaTool:
    return SchemaTool(name, {}, lambda arguments: "fresh")


async def ready(host: ServerHost) -> Peer:
    peer = await Peer(host).shake_hands()
    await peer.settle()
    return peer


async def test_ready_connections_are_told() -> None:
    """A client with a confirmed handshake is notified of every change, from any thread."""
    async with ServerHost(container_of(Echo())) as host:
        peer = await ready(host)
        host.registry.register(fresh())
        assert await peer.receive() == CHANGED
        await asyncio.to_thread(host.registry.unregister, "fresh")
        assert await peer.receive() == CHANGED
        assert await peer.close() == []


async def test_other_connections_are_not_told() -> None:
    """Clients without a confirmed handshake are not notified."""
    async with ServerHost(container_of(Echo())) as host:
        silent, begun, stateless = (Peer(host) for _ in range(3))
        begun.transport.send(message("initialize", INITIALIZE))
        await begun.receive()
        await stateless.reply(stateless.call("echo"))
        witness = await ready(host)
        host.registry.register(fresh())
        assert await witness.receive() == CHANGED
        for peer in (silent, begun, stateless, witness):
            assert await peer.close() == []


async def test_what_changes_nothing_is_not_told() -> None:
    """Operations that change nothing are not announced."""
    async with ServerHost(container_of(Echo())) as host:
        peer = await ready(host)
        assert not host.registry.register(Echo())
        assert not host.registry.unregister("nobody")
        await asyncio.sleep(0)
        assert await peer.close() == []


async def test_several_tools_are_one_piece_of_news() -> None:
    """Tools that are added together cause one notification."""
    async with ServerHost(container_of(Echo())) as host:
        peer = await ready(host)
        assert host.registry.register_range([fresh("one"), fresh("two")]) == 2
        assert await peer.receive() == CHANGED
        assert await peer.close() == []


async def test_a_connection_that_ended_is_forgotten() -> None:
    """A change after the end of a connection has no effect."""
    async with ServerHost(container_of(Echo())) as host:
        peer = await ready(host)
        await peer.close()
        assert host.registry.register(fresh())
        await asyncio.sleep(0)
        assert await peer.close() == []


async def test_a_tool_that_goes_while_it_runs_is_answered() -> None:
    """A running call finishes after its tool is removed."""
    gate = asyncio.Event()

    async def wait(arguments: dict[str, object]) -> str:
        gate.set()
        await asyncio.sleep(0)
        return "finished"

    async with ServerHost(container_of(SchemaTool("leaving", {}, wait))) as host:
        peer = Peer(host)
        peer.call("leaving")
        await gate.wait()
        host.registry.unregister("leaving")
        (reply,) = await peer.close()
        assert reply["result"]["content"][0]["text"] == "finished"


@prompt
async def passing_prompt() -> str:
    """Come and go."""
    return ""


@resource("docs://passing")
async def passing_resource() -> str:
    """Come and go."""
    return ""


@resource("docs://made/{name}")
async def passing_template(name: str) -> str:
    """Come and go."""
    return ""


def registries() -> dict[str, Any]:
    return {
        "tool_registry": ToolRegistry([Echo()]),
        "prompt_registry": PromptRegistry(),
        "resource_registry": ResourceRegistry(),
    }


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(
    ("role", "item", "kind"),
    [
        ("tool_registry", fresh(), "tools"),
        ("prompt_registry", passing_prompt, "prompts"),
        ("resource_registry", passing_resource, "resources"),
        ("resource_registry", passing_template, "resources"),
    ],
)
async def test_every_list_is_announced(version: str, role: str, item: Any, kind: str) -> None:
    """Each kind of feature has its own notification, in every revision."""
    roles = registries()
    async with conversing(container_with(**roles)) as host:
        peer = await Peer(host).shake_hands(version)
        assert (await peer.ask("ping"))["result"] == {}
        registry = roles[role]
        registry.register(item)
        assert await peer.receive() == {"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}
        await asyncio.to_thread(registry.unregister, registry.name_of(item))
        assert await peer.receive() == {"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}
        assert await peer.close() == []


async def test_a_watched_resource_is_told_of_from_any_thread() -> None:
    """Concurrent updates from threads reach each subscriber once."""
    registry = ResourceRegistry([passing_resource])
    async with conversing(container_with(resource_registry=registry)) as host:
        peers = [await Peer(host).shake_hands() for _ in range(3)]
        for peer in peers[:2]:
            assert (await peer.ask("resources/subscribe", {"uri": "docs://passing"}))["result"] == {}
        uris = [f"docs://passing/{number}" for number in range(40)]
        threads = [threading.Thread(target=registry.updated, args=(uri,)) for uri in uris]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        for peer in peers[:2]:
            assert {(await peer.receive())["params"]["uri"] for _ in uris} == set(uris)
        for peer in peers:
            assert await peer.close() == []


async def test_who_stops_watching_hears_no_more() -> None:
    """After the end of a subscription or connection, no updates are sent."""
    registry = ResourceRegistry([passing_resource])
    async with conversing(container_with(resource_registry=registry)) as host:
        gone, stayed = await Peer(host).shake_hands(), await Peer(host).shake_hands()
        for peer in (gone, stayed):
            await peer.ask("resources/subscribe", {"uri": "docs://passing"})
        assert await gone.close() == []
        await stayed.ask("resources/unsubscribe", {"uri": "docs://passing"})
        registry.updated("docs://passing")
        assert (await stayed.ask("ping"))["result"] == {}
        assert await stayed.close() == []


async def test_a_subscription_outlives_its_resource() -> None:
    """A subscription continues when its resource is removed and added again."""
    registry = ResourceRegistry([passing_resource])
    async with conversing(container_with(resource_registry=registry)) as host:
        peer = await Peer(host).shake_hands()
        await peer.ask("resources/subscribe", {"uri": "docs://passing"})
        registry.unregister("docs://passing")
        registry.register(passing_resource)
        registry.updated("docs://passing")
        methods = [(await peer.receive())["method"] for _ in range(3)]
        assert methods == ["notifications/resources/list_changed"] * 2 + ["notifications/resources/updated"]


async def test_changes_and_handshakes_may_coincide() -> None:
    """With concurrent changes and handshakes, no client is notified before it is ready."""
    roles = registries()
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            roles["tool_registry"].register(fresh())
            roles["tool_registry"].unregister("fresh")

    async with conversing(container_with(**roles)) as host:
        changing = threading.Thread(target=change)
        changing.start()
        try:
            for _ in range(30):
                peer = await Peer(host).shake_hands()
                assert (await peer.receive()) == CHANGED
                assert all(said == CHANGED for said in await peer.close())
        finally:
            stop.set()
            await asyncio.to_thread(changing.join)
        await until(lambda: not host.handler.subscriptions._connections)
