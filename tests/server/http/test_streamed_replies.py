"""Replies as events, so that they can be resumed."""

import httpx2

from tests.support.peers.session_client import Client
from tests.support.peers.wire import call, mirrored
from tests.support.servers.serving import serving
from tests.support.tools import Echo, container_of

STREAMED = {"sessions": {"resumable": "replies"}}


async def test_a_reply_can_be_fetched_again() -> None:
    """A plain reply in a session is an event with an id, and can be fetched again."""
    async with serving(container_of(Echo()), STREAMED) as server, httpx2.AsyncClient(verify=False) as http:
        client = Client(http, server.url)
        assert (await client.begin()).headers["content-type"] == "application/json"
        async with client.calling(call("echo", {"text": "x"}, id=7, handshake=True)) as reader:
            primed, reply = await reader.take(), await reader.take()
            assert primed.is_priming
            assert (reply.message["id"], await reader.next()) == (7, None)
        async with client.hearing(primed.id) as again:
            assert [event.message["id"] for event in await again.rest() if event.data] == [7]


async def test_other_replies_stay_as_they_are() -> None:
    """Stateless requests, and clients that do not accept streams, get plain replies."""
    async with serving(container_of(Echo()), STREAMED) as server, httpx2.AsyncClient(verify=False) as http:
        body = call("echo", {"text": "x"})
        reply = await http.post(server.url, content=body, headers=mirrored(name="echo"))
        assert reply.headers["content-type"] == "application/json"
        client = Client(http, server.url)
        await client.begin()
        plain = await client.post(call("echo", {"text": "x"}, handshake=True), Accept="application/json")
        assert plain.headers["content-type"] == "application/json"
