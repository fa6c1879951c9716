"""Telling clients on a stream that the list of tools changed."""

import asyncio
import json

from axolotl_core import SchemaTool
from axolotl_server import ServerHost
from axolotl_server.transports.memory import MemoryTransport
from tests.server.serving import PATIENCE_SECONDS
from tests.server.tools import Echo, container_of
from tests.server.wire import INITIALIZE, call, message

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def fresh(name: str = "fresh") -> SchemaTool:
    return SchemaTool(name, {}, lambda arguments: "fresh")


async def receive(transport: MemoryTransport) -> object:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return json.loads(await transport.receive())


async def ready(host: ServerHost) -> MemoryTransport:
    transport = MemoryTransport(host.handler)
    transport.send(message("initialize", INITIALIZE))
    await receive(transport)
    transport.send(message("notifications/initialized", id=None))
    transport.send(message("ping", id=2))
    await receive(transport)
    return transport


async def test_ready_connections_are_told() -> None:
    """A client that confirmed its handshake hears of every change, from whatever thread it is made."""
    async with ServerHost(container_of(Echo())) as host:
        transport = await ready(host)
        host.registry.register(fresh())
        assert await receive(transport) == CHANGED
        await asyncio.to_thread(host.registry.unregister, "fresh")
        assert await receive(transport) == CHANGED
        assert await transport.close() == []


async def test_other_connections_are_not_told() -> None:
    """A client before its handshake, one that did not confirm it, and one without any hear nothing."""
    async with ServerHost(container_of(Echo())) as host:
        silent, begun, stateless = (MemoryTransport(host.handler) for _ in range(3))
        begun.send(message("initialize", INITIALIZE))
        await receive(begun)
        stateless.send(call("echo"))
        await receive(stateless)
        witness = await ready(host)
        host.registry.register(fresh())
        assert await receive(witness) == CHANGED
        for transport in (silent, begun, stateless, witness):
            assert await transport.close() == []


async def test_what_changes_nothing_is_not_told() -> None:
    """A tool whose name is taken and one that was not there are no news."""
    async with ServerHost(container_of(Echo())) as host:
        transport = await ready(host)
        assert not host.registry.register(Echo())
        assert not host.registry.unregister("nobody")
        await asyncio.sleep(0)
        assert await transport.close() == []


async def test_several_tools_are_one_piece_of_news() -> None:
    """Tools that are added together are announced once."""
    async with ServerHost(container_of(Echo())) as host:
        transport = await ready(host)
        assert host.registry.register_range([fresh("one"), fresh("two")]) == 2
        assert await receive(transport) == CHANGED
        assert await transport.close() == []


async def test_a_connection_that_ended_is_forgotten() -> None:
    """A change after the end of a connection harms nobody."""
    async with ServerHost(container_of(Echo())) as host:
        transport = await ready(host)
        await transport.close()
        assert host.registry.register(fresh())
        await asyncio.sleep(0)
        assert await transport.close() == []


async def test_a_tool_that_goes_while_it_runs_is_answered() -> None:
    """A call that began before its tool went is finished."""
    gate = asyncio.Event()

    async def wait(arguments: dict[str, object]) -> str:
        gate.set()
        await asyncio.sleep(0)
        return "finished"

    async with ServerHost(container_of(SchemaTool("leaving", {}, wait))) as host:
        transport = MemoryTransport(host.handler)
        transport.send(call("leaving"))
        await gate.wait()
        host.registry.unregister("leaving")
        (reply,) = await transport.close(PATIENCE_SECONDS)
        assert json.loads(reply)["result"]["content"][0]["text"] == "finished"
