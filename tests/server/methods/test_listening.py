"""`subscriptions/listen`: many subscribers, slow ones, disconnects and shutdown."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest

from axolotl_core import Context, ToolRegistry, resource, tool
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server.protocol.flow_control import MAX_WAITING
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.peers.session_client import Client, EventReader
from tests.support.peers.wire import META, call, connection, message, mirrored, raw_request, read_head
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until

TOOLS = {"toolsListChanged": True}
SPOKEN: Mapping[str, Any] = {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}
ID = "io.modelcontextprotocol/subscriptionId"


@tool
async def chatty(context: Context) -> str:
    """Report and log."""
    context.report_progress(1)
    context.log("error", "said")
    return "said"


@resource("docs://note")
async def note() -> str:
    """Be watched."""
    return "note"


def container() -> Any:
    return container_with((chatty,), resources=(note,))


def listen(wanted: Mapping[str, Any] = TOOLS, id: int | str = 1) -> bytes:
    return message("subscriptions/listen", {"notifications": wanted, "_meta": META}, id=id)


def fresh(name: str) -> SchemaTool:
    return SchemaTool(name, {}, lambda arguments: "fresh")


def churn(registry: ToolRegistry, times: int) -> None:
    """Change the list of tools a number of times."""
    for number in range(times):
        changed = registry.unregister("extra") if number % 2 else registry.register(fresh("extra"))
        assert changed


def count(server: HttpServer) -> int:
    return len(server.host.handler.subscriptions._listeners)


@asynccontextmanager
async def listening(
    server: HttpServer, http: httpx2.AsyncClient, wanted: Mapping[str, Any] = TOOLS, id: int | str = 1
) -> AsyncIterator[EventReader]:
    """Open a subscription over HTTP and read its acknowledgement."""
    headers = mirrored("subscriptions/listen")
    async with http.stream("POST", server.url, content=listen(wanted, id), headers=headers) as response:
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")
        reader = EventReader(response)
        acknowledged = (await reader.take()).message
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["_meta"] == {ID: id}
        yield reader


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS, limits=limits) as client:
        yield client


async def test_the_stream_of_a_listener(http: httpx2.AsyncClient) -> None:
    """The stream is not buffered by proxies, and its events carry the subscription's id but no event ids."""
    async with serving(container()) as server, listening(server, http, id="news") as stream:
        assert stream.response.headers["x-accel-buffering"] == "no"
        assert "mcp-session-id" not in stream.response.headers
        server.host.registry.register(fresh("extra"))
        event = await stream.take()
        assert event.id is None
        assert event.message["params"] == {"_meta": {ID: "news"}}


async def test_listeners_of_other_clients_may_have_the_same_id(http: httpx2.AsyncClient) -> None:
    """Over HTTP, each stream is a separate subscription, even with equal request ids."""
    async with serving(container()) as server, AsyncExitStack() as stack:
        wishes: Iterable[Mapping[str, Any]] = (TOOLS, TOOLS, {"resourceSubscriptions": ["docs://note"]})
        streams = [await stack.enter_async_context(listening(server, http, wanted)) for wanted in wishes]
        server.host.registry.register(fresh("extra"))
        server.host.roles.resource_registry.updated("docs://note")
        heard = [(await stream.take()).message["method"] for stream in streams]
        assert heard == ["notifications/tools/list_changed"] * 2 + ["notifications/resources/updated"]


async def test_many_listeners_hear_of_every_change(http: httpx2.AsyncClient) -> None:
    """Fifty streams get every change of a thread, in order."""
    async with serving(container()) as server, AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(listening(server, http, id=number)) for number in range(50)]
        assert count(server) == 50
        await asyncio.to_thread(churn, server.host.registry, 6)
        for number, stream in enumerate(streams):
            for _ in range(6):
                assert (await stream.take()).message["params"]["_meta"] == {ID: number}


async def test_who_leaves_is_forgotten(http: httpx2.AsyncClient) -> None:
    """A client that closes its stream is removed."""
    async with serving(container()) as server:
        async with listening(server, http), listening(server, http, id=2):
            assert count(server) == 2
        await until(lambda: count(server) == 0)
        server.host.registry.register(fresh("extra"))
        async with listening(server, http) as stream:
            server.host.registry.register(fresh("more"))
            assert (await stream.take()).message["method"] == "notifications/tools/list_changed"


async def test_a_listener_that_never_reads_holds_nobody_up(http: httpx2.AsyncClient) -> None:
    """A client that never reads loses the oldest notifications, and does not delay others."""
    far = "docs://" + "x" * 700
    wanted = {"resourceSubscriptions": [far]}
    head = raw_request(listen(wanted, "deaf"), mirrored("subscriptions/listen").items())
    async with serving(container()) as server, _deaf_connection(server.port) as deaf:
        deaf.sendall(head)
        await until(lambda: count(server) == 1)
        (deaf_listener,) = server.host.handler.subscriptions._listeners
        async with listening(server, http, wanted, id="keen") as keen:
            for _ in range(20 * MAX_WAITING // 100):
                for _ in range(100):
                    server.host.roles.resource_registry.updated(far)
                for _ in range(100):
                    assert (await keen.take()).message["params"]["_meta"] == {ID: "keen"}
            exchange: Any = deaf_listener._exchange
            assert exchange._message_stream.waiting == MAX_WAITING
            reply = await http.post(server.url, content=call("chatty"), headers=mirrored(name="chatty"))
            assert reply.status_code == 200


@asynccontextmanager
async def _deaf_connection(port: int) -> AsyncIterator[socket.socket]:
    """Connect without reading, with the smallest possible buffer."""
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        deaf.connect(("127.0.0.1", port))
        yield deaf


async def test_the_end_of_the_server_ends_listeners(http: httpx2.AsyncClient) -> None:
    """On shutdown each subscription gets a result, and its stream is closed."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(container()))
        streams = [await stack.enter_async_context(listening(server, http, id=number)) for number in range(3)]
        server.app.sessions.end_streams()
        for number, stream in enumerate(streams):
            (last,) = await stream.rest()
            assert last.message["id"] == number
            assert last.message["result"]["resultType"] == "complete"
            assert last.message["result"]["_meta"][ID] == number
        await until(lambda: count(server) == 0)


async def test_a_listener_needs_a_stream(http: httpx2.AsyncClient) -> None:
    """A client that does not accept streams cannot subscribe."""
    async with serving(container()) as server:
        headers = {**mirrored("subscriptions/listen"), "Accept": "application/json"}
        reply = await http.post(server.url, content=listen(), headers=headers)
        assert (reply.status_code, reply.json()["id"], reply.json()["error"]["code"]) == (406, 1, -32600)
        assert count(server) == 0


async def test_only_so_many_may_listen(http: httpx2.AsyncClient) -> None:
    """Subscriptions beyond the limit are rejected until one ends."""
    async with serving(container(), {"subscriptions": {"maximum": 2}}) as server:
        async with listening(server, http), listening(server, http):
            reply = await http.post(server.url, content=listen(), headers=mirrored("subscriptions/listen"))
            assert reply.headers["content-type"] == "application/json"
            assert reply.json()["error"]["code"] == -32603
        await until(lambda: count(server) == 0)
        async with listening(server, http):
            assert count(server) == 1


async def test_a_listener_hears_nothing_of_calls() -> None:
    """Progress and log messages do not go to subscriptions."""
    async with conversing(container()) as host:
        listener, caller = Peer(host), Peer(host)
        listener.send("subscriptions/listen", {"notifications": TOOLS}, id="news")
        await listener.hear("notifications/subscriptions/acknowledged")
        caller.call("chatty", **SPOKEN)
        methods = [(await caller.receive()).get("method") for _ in range(3)]
        assert methods == ["notifications/progress", "notifications/message", None]
        listener.notify("notifications/cancelled", {"requestId": "news"})
        await until(lambda: not host.handler.subscriptions._listeners)
        assert await listener.close() == []


async def test_a_stateless_client_on_a_session_hears_what_it_asked_for(http: httpx2.AsyncClient) -> None:
    """A client with a session and a subscription gets a change once on each."""
    async with serving(container()) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.hearing() as news, listening(server, http, id=7) as stream:
            assert (await news.take()).is_priming
            server.host.registry.register(fresh("extra"))
            assert (await stream.take()).message["params"] == {"_meta": {ID: 7}}
            assert "params" not in (await news.take()).message


async def test_a_listener_that_is_told_while_it_leaves() -> None:
    """A notification for a client that has just left is dropped."""
    async with conversing(container()) as host:
        for number in range(20):
            peer = Peer(host)
            peer.send("subscriptions/listen", {"notifications": TOOLS}, id=number)
            await peer.hear("notifications/subscriptions/acknowledged")
            churn(host.registry, 2)
            peer.cancel(number)
            churn(host.registry, 2)
            await until(lambda: not host.handler.subscriptions._listeners)
            assert all("method" in said for said in await peer.close())


async def test_an_idle_listener_is_kept_alive() -> None:
    """An idle stream gets comments."""
    settings = {"http": {"keep_alive_seconds": 0.01}}
    async with serving(container(), settings) as server, connection(server.port) as (reader, writer):
        writer.write(raw_request(listen(), mirrored("subscriptions/listen").items()))
        status, _ = await read_head(reader)
        assert status == 200
        while not (await reader.readline()).startswith(b":"):
            pass


async def test_nothing_comes_before_the_acknowledgement() -> None:
    """No notification precedes the acknowledgement."""
    async with conversing(container()) as host:
        for number in range(50):
            peer = Peer(host)
            peer.send("subscriptions/listen", {"notifications": TOOLS}, id=number)
            for _ in range(number % 4):
                await asyncio.sleep(0)
            churn(host.registry, 2)
            first = await peer.receive()
            assert first["method"] == "notifications/subscriptions/acknowledged"
            peer.cancel(number)
            await until(lambda: not host.handler.subscriptions._listeners)
            rest = [json.dumps(one) for one in await peer.close()]
            assert all("list_changed" in one for one in rest)
