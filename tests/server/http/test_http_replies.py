"""HTTP replies: JSON, or an event stream if there are messages before the reply."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from pydantic import BaseModel

from axolotl_core import Context, ITool
from tests.support.peers.wire import META, call, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving
from tests.support.tools import Echo, container_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Steps(BaseModel):
    steps: int


class Climb(ITool[Steps, str]):
    name = "climb"

    async def execute(self, arguments: Steps, context: Context) -> str:
        for step in range(1, arguments.steps + 1):
            context.report_progress(step)
        return "there"


class Stumble(ITool[Steps, str]):
    name = "stumble"

    async def execute(self, arguments: Steps, context: Context) -> str:
        context.report_progress(1)
        await asyncio.sleep(0)
        raise RuntimeError("the password is swordfish")


class Late(ITool[Steps, str]):
    """Reports progress after its call has ended."""

    name = "late"

    async def execute(self, arguments: Steps, context: Context) -> str:
        asyncio.get_running_loop().call_soon(context.report_progress, 99)
        return "early"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[HttpServer]:
    """A server with tools that report progress and tools that do not."""
    async with serving(container_of(Echo(), Climb(), Stumble(), Late())) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client


def events(reply: httpx2.Response) -> list[Any]:
    assert reply.headers["content-type"] == "text/event-stream"
    blocks = reply.text.split("\n\n")
    assert blocks.pop() == ""
    return [json.loads(block.removeprefix("event: message\ndata: ")) for block in blocks]


async def test_a_reply_alone_is_json(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """A reply without other messages is JSON with a length, whatever the client accepts."""
    reply = await http.post(server.url, content=call("echo"), headers=mirrored(name="echo"))
    assert reply.headers["content-type"] == "application/json"
    assert int(reply.headers["content-length"]) == len(reply.content)
    assert "transfer-encoding" not in reply.headers


async def test_unrequested_progress_changes_nothing(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Without a progress token, a tool that reports progress gets a JSON reply."""
    reply = await http.post(server.url, content=call("climb", {"steps": 3}), headers=mirrored(name="climb"))
    assert reply.headers["content-type"] == "application/json"


async def test_a_report_makes_a_stream(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Progress comes before the reply, then the stream ends; caches and proxies must not buffer it."""
    body = call("climb", {"steps": 3}, id="me", token="tok")
    reply = await http.post(server.url, content=body, headers=mirrored(name="climb"))
    *reports, last = events(reply)
    assert [report["params"]["progress"] for report in reports] == [1, 2, 3]
    assert {report["params"]["progressToken"] for report in reports} == {"tok"}
    assert (last["id"], last["result"]["content"][0]["text"]) == ("me", "there")
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert "mcp-session-id" not in reply.headers
    assert "id:" not in reply.text.replace('"id":', "")


async def test_a_client_that_accepts_only_json_gets_no_stream(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """A client that accepts only JSON gets no progress."""
    headers = {**mirrored(name="climb"), "Accept": "application/json"}
    reply = await http.post(server.url, content=call("climb", {"steps": 3}, token=1), headers=headers)
    assert reply.json()["result"]["content"][0]["text"] == "there"


async def test_a_failure_in_a_stream_is_its_last_event(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """An error after the first report is the last event of the stream, without details."""
    body = call("stumble", {"steps": 1}, token=1)
    reply = await http.post(server.url, content=body, headers=mirrored(name="stumble"))
    assert reply.status_code == 200
    assert events(reply)[-1]["result"]["isError"] is True
    assert "swordfish" not in reply.text


async def test_many_reports_are_rationed(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """A large amount of progress is dropped except for the newest; the reply is always sent."""
    body = call("climb", {"steps": 5000}, token=1)
    *reports, last = events(await http.post(server.url, content=body, headers=mirrored(name="climb")))
    values = [report["params"]["progress"] for report in reports]
    assert values == sorted(values)
    assert len(values) <= 1001
    assert values[-1] == 5000
    assert "result" in last


async def test_a_report_after_the_reply_is_dropped(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Progress after the end of a call is dropped."""
    for _ in range(20):
        body = call("late", {"steps": 1}, token=1)
        reply = await http.post(server.url, content=body, headers=mirrored(name="late"))
        assert reply.json()["result"]["content"][0]["text"] == "early"


async def test_notifications_have_no_reply(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """A notification is accepted with an empty body."""
    body = message("notifications/whatever", {"_meta": META}, id=None)
    reply = await http.post(server.url, content=body, headers=mirrored("notifications/whatever"))
    assert (reply.status_code, reply.content) == (202, b"")


async def test_a_rejection_is_an_error_without_an_id(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """A request that is rejected unread gets a JSON-RPC error without an id."""
    reply = await http.post(server.url, content=b"{}", headers={"Content-Type": "text/plain"})
    assert reply.status_code == 415
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == {"jsonrpc": "2.0", "error": {"code": -32600, "message": reply.json()["error"]["message"]}}


async def test_many_clients_at_once(server: HttpServer, http: httpx2.AsyncClient) -> None:
    """Concurrent clients with equal ids get their own replies."""
    bodies = [call("echo", {"text": str(number)}, id=1) for number in range(100)]
    posts = (http.post(server.url, content=body, headers=mirrored(name="echo")) for body in bodies)
    replies = await asyncio.gather(*posts)
    assert [reply.json()["result"]["content"][0]["text"] for reply in replies] == [str(n) for n in range(100)]
