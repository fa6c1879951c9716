"""Subscriptions to resources."""

from contextlib import AsyncExitStack

import pytest
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost
from mcp_types import ResourceUpdatedNotification, TextResourceContents, ToolListChangedNotification

from tests.support.clients.client_adapters import IPeer, OfficialPeer
from tests.support.clients.client_routes import LISTENING_WAYS, SHARED_WAYS, Way, by_handshake_ways
from tests.support.clients.connections import Places, connected
from tests.support.clients.full_container import Container
from tests.support.clients.kept_connections import Lines
from tests.support.clients.simulated_user import soon
from tests.support.servers.serving import serving

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]


async def note_of(peer: IPeer, uri: str) -> str:
    (content,) = (await peer.read(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


@by_handshake_ways
async def test_a_session_watches_a_resource(peer: IPeer) -> None:
    """A subscribed client is notified when a tool changes a resource, and then reads the new content."""
    name = f"watched-by-{peer.way}"
    await peer.call("write_note", {"name": name, "text": "before"})
    await peer.session.subscribe_resource(f"notes://{name}")
    await peer.call("write_note", {"name": "of-no-interest", "text": "x"})
    await peer.call("write_note", {"name": name, "text": "after"})
    notice = await peer.person.next_notice(ResourceUpdatedNotification)
    assert notice.params.uri == f"notes://{name}"
    assert await note_of(peer, f"notes://{name}") == "after"


@by_handshake_ways
async def test_a_session_watches_no_more(peer: IPeer) -> None:
    """After unsubscribing, a client gets no more updates of the resource, but still gets other notifications."""
    name = f"unwatched-by-{peer.way}"
    await peer.session.subscribe_resource(f"notes://{name}")
    await peer.session.unsubscribe_resource(f"notes://{name}")
    await peer.call("write_note", {"name": name, "text": "unnoticed"})
    await peer.call("put", {"kind": "tools", "name": name})
    await peer.call("take", {"kind": "tools", "name": name})
    for _ in range(2):
        await peer.person.next_notice(ToolListChangedNotification)
    told = [notice for notice in peer.person.heard if isinstance(notice, ResourceUpdatedNotification)]
    assert told == []


@pytest.mark.parametrize("peer", LISTENING_WAYS, ids=str, indirect=True)
async def test_a_listener_watches_a_resource(peer: OfficialPeer) -> None:
    """A client that listens is notified of the resources that it named and of no others."""
    name = f"watched-by-{peer.way}"
    await peer.call("write_note", {"name": name, "text": "before"})
    async with peer.client.listen(resource_subscriptions=[f"notes://{name}"]) as changes:
        assert changes.honored.resource_subscriptions == [f"notes://{name}"]
        await peer.call("write_note", {"name": "of-no-interest", "text": "x"})
        await peer.call("write_note", {"name": name, "text": "after"})
        assert await soon(anext(changes)) == ResourceUpdated(uri=f"notes://{name}")
        assert await note_of(peer, f"notes://{name}") == "after"


@pytest.mark.parametrize("peer", LISTENING_WAYS, ids=str, indirect=True)
async def test_listeners_of_one_connection(peer: OfficialPeer) -> None:
    """A client can have several subscriptions; each gets its own notifications, even after another has ended."""
    uris = [f"notes://{number}-of-{peer.way}" for number in (1, 2)]
    async with peer.client.listen(resource_subscriptions=uris[1:]) as second:
        async with peer.client.listen(resource_subscriptions=uris) as both:
            for uri in uris:
                await peer.call("write_note", {"name": uri.removeprefix("notes://"), "text": "once"})
                assert await soon(anext(both)) == ResourceUpdated(uri=uri)
        assert await soon(anext(second)) == ResourceUpdated(uri=uris[1])
        await peer.call("write_note", {"name": uris[1].removeprefix("notes://"), "text": "twice"})
        assert await soon(anext(second)) == ResourceUpdated(uri=uris[1])


async def test_all_clients_are_notified(lines: Lines) -> None:
    """A change by one client reaches all subscribed clients, regardless of era and transport."""
    uri = "notes://for-everybody"
    peers = [await lines.to(way) for way in SHARED_WAYS]
    watching = [peer for peer in peers if not peer.way.stateless]
    listening = [peer for peer in peers if isinstance(peer, OfficialPeer) and peer.way.stateless]
    async with AsyncExitStack() as stack:
        for peer in watching:
            await peer.session.subscribe_resource(uri)
        opened = [peer.client.listen(resource_subscriptions=[uri]) for peer in listening]
        changes = [await stack.enter_async_context(one) for one in opened]
        for author in peers:
            await author.call("write_note", {"name": "for-everybody", "text": f"by {author.way}"})
            for peer in watching:
                assert (await peer.person.next_notice(ResourceUpdatedNotification)).params.uri == uri
            for one in changes:
                assert await soon(anext(one)) == ResourceUpdated(uri=uri)
    for peer in watching:
        await peer.session.unsubscribe_resource(uri)


async def test_subscriptions_end_with_the_server(places: Places) -> None:
    """When the server stops, a listening client sees its subscription end without an error."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(Container()))
        there = Places(server.url, "", places.command)
        async with connected(Way("official", "auto", "http"), there) as peer:
            assert isinstance(peer, OfficialPeer)
            async with peer.client.listen(tools_list_changed=True) as changes:
                await stack.aclose()
                try:
                    heard = [change async for change in changes]
                except SubscriptionLost:
                    pytest.fail("the stream was cut off")
                assert heard == []
