"""Abandoned calls over HTTP: the connection can be used again after the reply."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from dependency_injector import providers

from axolotl_core import Context
from axolotl_core.calls.cancellation import CancelReason
from tests.server.calls.test_abandoned_calls import StuckPrompt
from tests.support.endless_tools import Stuck
from tests.support.peers.session_client import Client
from tests.support.peers.wire import META, call, connection, message, mirrored, raw_request, read_head, read_reply
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import Echo, container_of


async def _report(context: Context) -> None:
    context.report_progress(1)


@pytest.fixture
def stuck() -> Stuck:
    """A tool that never ends."""
    return Stuck()


@pytest_asyncio.fixture
async def server(stuck: Stuck) -> AsyncIterator[HttpServer]:
    """A server with that tool and a good one."""
    async with serving(container_of(stuck, Echo())) as running:
        yield running
        stuck.release.set()


def posted(name: str, arguments: Any = None, **options: Any) -> bytes:
    """Encode a call as an HTTP request."""
    return raw_request(call(name, arguments, **options), mirrored(name=name).items())


async def test_the_connection_is_free_at_once(server: HttpServer, stuck: Stuck) -> None:
    """The next request on the connection is answered while abandoned code still runs."""
    async with connection(server.port) as (reader, writer):
        for number in range(2):
            writer.write(posted("stuck", id=number))
            reply = await read_reply(reader)
            assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
            assert json.loads(reply.body)["result"]["_meta"]["axolotl/reason"] == "timeout"
            writer.write(posted("echo", {"text": "next"}, id=7))
            assert b'"text":"next"' in (await read_reply(reader)).body
        assert len(server.host.handler.inflight.zombies) == 2
        stuck.release.set()
        await until(lambda: len(server.host.handler.inflight.zombies) == 0)
        writer.write(posted("echo", {"text": "last"}))
        assert b'"text":"last"' in (await read_reply(reader)).body


async def test_requests_that_came_early_have_their_turn(server: HttpServer) -> None:
    """Pipelined requests are answered in order."""
    async with connection(server.port) as (reader, writer):
        writer.write(posted("stuck", id=1) + posted("echo", {"text": "x"}, id=2) + posted("stuck", id=3))
        replies = [json.loads((await read_reply(reader)).body) for _ in range(3)]
    assert [reply["id"] for reply in replies] == [1, 2, 3]


async def test_an_open_stream_ends_with_the_answer(server: HttpServer, stuck: Stuck) -> None:
    """On a stream with progress, the reply is the last event."""
    stuck._last_words = _report
    async with connection(server.port) as (reader, writer):
        writer.write(posted("stuck", id=1, token=5))
        status, headers = await read_head(reader)
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        body = (await reader.readuntil(b"0\r\n\r\n")).decode()
        assert body.index("notifications/progress") < body.index('"axolotl/reason":"timeout"')
        stuck.release.set()
        await stuck.ended.wait()
        writer.write(posted("echo", {"text": "next"}, id=2))
        assert b'"text":"next"' in (await read_reply(reader)).body


async def test_a_client_that_leaves(server: HttpServer, stuck: Stuck) -> None:
    """Closing the connection stops the call, and its code is counted."""
    stuck.timeout_seconds = 30
    async with serving(container_of(stuck)) as slow:
        async with connection(slow.port) as (_, writer):
            writer.write(posted("stuck"))
            await stuck.started.wait()
        await until(lambda: len(slow.host.handler.inflight.zombies) == 1)
        assert not slow.host.handler.inflight
        assert stuck.contexts[-1].cancel_reason is CancelReason.DISCONNECT
        stuck.release.set()
        await until(lambda: len(slow.host.handler.inflight.zombies) == 0)


async def test_an_error_has_its_status(stuck: Stuck) -> None:
    """A prompt that never ends gets an error with the usual status and headers."""
    container = container_of()
    container.prompts = providers.Object([StuckPrompt(stuck)])
    async with serving(container) as server, connection(server.port) as (reader, writer):
        body = message("prompts/get", {"name": "stuck", "_meta": META})
        writer.write(raw_request(body, mirrored("prompts/get", "stuck").items()))
        reply = await read_reply(reader)
        assert reply.status == 200
        assert reply.headers["content-type"] == "application/json"
        assert "did not finish" in reply.error["message"]
        stuck.release.set()


@pytest.mark.parametrize("streams", [False, True])
async def test_in_a_session(stuck: Stuck, streams: bool) -> None:
    """A client in a session gets the same reply, also on a stream."""
    settings = {"sessions": {"resumable": "replies" if streams else "streams"}}
    async with serving(container_of(stuck, Echo()), settings) as server, httpx2.AsyncClient() as http:
        client = Client(http, server.url)
        await client.begin()
        reply = await client.post(call("stuck", id=1, handshake=True))
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("text/event-stream" if streams else "application/json")
        assert '"axolotl/reason":"timeout"' in reply.text
        again = await client.post(call("echo", {"text": "x"}, id=1, handshake=True))
        assert '"text":"x"' in again.text
        stuck.release.set()
        await until(lambda: len(server.host.handler.inflight.zombies) == 0)


@pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream"])
async def test_a_cancelled_call_of_a_session(stuck: Stuck, accept: str) -> None:
    """A canceled request in a session gets an event stream without a response, or an error if it takes JSON only."""
    stuck.timeout_seconds = 30
    async with serving(container_of(stuck)) as server, httpx2.AsyncClient() as http:
        client = Client(http, server.url)
        await client.begin()
        client.headers["Accept"] = accept
        running = asyncio.ensure_future(client.post(call("stuck", id=5, handshake=True)))
        await stuck.started.wait()
        cancelled = message("notifications/cancelled", {"requestId": 5}, id=None)
        assert (await client.post(cancelled)).status_code == 202
        reply = await asyncio.wait_for(running, PATIENCE_SECONDS)
        assert reply.status_code == 200
        assert reply.headers["content-type"] == accept.rpartition(" ")[2]
        assert reply.json()["error"]["code"] == -32800 if accept == "application/json" else reply.text == ""
        stuck.release.set()


async def test_a_session_that_ends(stuck: Stuck) -> None:
    """Ending a session stops its calls without waiting for their code."""
    stuck.timeout_seconds = 30
    async with serving(container_of(stuck)) as server, httpx2.AsyncClient() as http:
        client = Client(http, server.url)
        await client.begin()
        running = asyncio.ensure_future(client.post(call("stuck", id=5, handshake=True)))
        await stuck.started.wait()
        assert (await client.end()).status_code == 200
        assert (await asyncio.wait_for(running, PATIENCE_SECONDS)).json()["error"]["code"] == -32800
        assert stuck.contexts[0].cancel_reason is CancelReason.DISCONNECT
        stuck.release.set()


async def test_a_task_of_a_session(stuck: Stuck) -> None:
    """A requested task has its result in time."""
    stuck.task_support = "required"
    async with serving(container_of(stuck)) as server, httpx2.AsyncClient() as http:
        client = Client(http, server.url)
        await client.begin()
        params = {"name": "stuck", "arguments": {}, "task": {"ttl": 60_000}}
        begun = (await client.post(message("tools/call", params))).json()["result"]["task"]
        result = await client.post(message("tasks/result", {"taskId": begun["taskId"]}, id=2))
        assert result.json()["result"]["_meta"]["axolotl/reason"] == "timeout"
        stuck.release.set()
        await until(lambda: len(server.host.handler.inflight.zombies) == 0)
        state = (await client.post(message("tasks/get", {"taskId": begun["taskId"]}, id=3))).json()["result"]
        assert state["status"] == "failed"


async def test_the_transport_with_two_endpoints(stuck: Stuck) -> None:
    """Clients of the SSE transport get the reply on their stream."""
    async with (
        serving(container_of(stuck, Echo()), {"http": {"sse_path": "/sse"}}) as server,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as http,
        http.stream("GET", "/sse", headers={"Accept": "text/event-stream"}) as stream,
    ):
        lines = stream.aiter_lines()
        endpoint = await _next_data(lines)
        for body in (call("stuck", id=1), call("echo", id=2)):
            await http.post(endpoint, content=body, headers={"Content-Type": "application/json"})
        ids = [json.loads(await _next_data(lines))["id"] for _ in range(2)]
        assert sorted(ids) == [1, 2]
        stuck.release.set()


async def _next_data(lines: AsyncIterator[str]) -> str:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for line in lines:
            if line.startswith("data: "):
                return line.removeprefix("data: ")
    raise AssertionError("the stream ended")
