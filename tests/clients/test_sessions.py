"""Connections: initialization, resumption, and many clients of one server."""

import asyncio

import pytest

from tests.support.clients.cable import cable_to
from tests.support.clients.client_adapters import IPeer
from tests.support.clients.client_routes import RESUMING_WAYS, SHARED_WAYS, by_every_way, by_handshake_ways
from tests.support.clients.connections import Places, connected
from tests.support.clients.kept_connections import Lines
from tests.support.clients.simulated_user import Progress, words

pytestmark = pytest.mark.asyncio(loop_scope="session")


@by_every_way
async def test_a_server_introduces_itself(peer: IPeer) -> None:
    """A client receives the server's identity, revision and capabilities."""
    assert peer.session.protocol_version == ("2026-07-28" if peer.way.stateless else "2025-11-25")
    if peer.way.mode == "2026-07-28":
        return  # with a fixed revision, clients send no discovery request
    assert peer.session.server_info is not None
    assert peer.session.server_info.name == "features"
    assert peer.session.instructions == "Try everything"
    offered = peer.session.server_capabilities
    assert offered is not None
    assert offered.tools is not None
    assert offered.prompts is not None
    assert offered.resources is not None
    assert offered.completions is not None
    assert offered.logging is not None
    assert offered.tools.list_changed
    assert offered.resources.subscribe


@by_handshake_ways
@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
async def test_a_session_is_alive(peer: IPeer) -> None:
    """A server answers a ping, even after a notification that it ignores."""
    await peer.session.send_roots_list_changed()
    assert await peer.session.send_ping() is not None


@by_every_way
async def test_many_calls_share_a_connection(peer: IPeer) -> None:
    """Concurrent calls on one connection get their own results."""
    results = await asyncio.gather(*(peer.call("report", {"city": f"city {number}"}) for number in range(30)))
    assert [result.structured_content["city"] for result in results] == [f"city {number}" for number in range(30)]


@by_every_way
async def test_a_server_closes_a_stream(peer: IPeer) -> None:
    """A client whose stream the server closes reconnects and gets its messages and questions; others are unaffected."""
    name, progress, before = f"sent-away-{peer.way}", Progress(), len(peer.wire.returns)
    peer.person.fill_in = words("yes")
    calling = asyncio.create_task(peer.call("leave", {"name": name}, progress))
    await progress.reached(2)
    await peer.call("release", {"name": name})
    (block,) = (await calling).content
    assert block.model_dump()["text"] == f"{name} yes"
    assert (len(peer.wire.returns) > before) is (peer.way in RESUMING_WAYS)


@pytest.mark.parametrize("peer", RESUMING_WAYS, ids=str, indirect=True)
async def test_a_connection_breaks(peer: IPeer, places: Places) -> None:
    """A client whose connection breaks during a call resumes it and gets the result."""
    name, progress = f"broken-{peer.way}", Progress()
    async with cable_to(places.url) as (cable, url), connected(peer.way, Places(url, "", places.command)) as far:
        calling = asyncio.create_task(far.call("follow", {"name": name}, progress))
        await progress.reached(1)
        cable.cut()
        await peer.call("release", {"name": name})
        (block,) = (await calling).content
        assert block.model_dump()["text"] == f"{name} followed"
        assert [value for value, _, _ in progress.heard] == [1, 2]
        assert far.wire.returns


async def test_eras_share_a_server(lines: Lines) -> None:
    """Clients of both eras use one server at the same time, and each gets its own questions and results."""
    peers = [await lines.to(way) for way in SHARED_WAYS]
    together = asyncio.Barrier(len(peers))

    async def converse(peer: IPeer) -> str:
        await together.wait()
        return await peer.text_of("step_by_step")

    for peer in peers:
        peer.person.fill_in = words("I came by", str(peer.way))
    answers = await asyncio.gather(*map(converse, peers))
    assert answers == [f"I came by {peer.way}" for peer in peers]
