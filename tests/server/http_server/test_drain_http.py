"""Graceful shutdown of an HTTP server: every call is answered, and the process ends in time."""

import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.commands import constants
from tests.support.containers.shutdown_tools import LONG
from tests.support.peers.session_client import Client
from tests.support.peers.wire import (
    INITIALIZE,
    JSON_HEADERS,
    META,
    connection,
    message,
    mirrored,
    raw_request,
    read_head,
    read_reply,
)
from tests.support.servers.server_process import ServerProcess, answer_to, over_http, posted, probe
from tests.support.servers.serving import PATIENCE_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals")]

CALLS = 250
SLACK = 3.0
"""Additional time for busy machines."""
TOLD = "stopping, requested by"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


async def ended_well(server: ServerProcess) -> str:
    """Wait for the end of a server, check its exit code, and return its log."""
    assert await server.ended() == 0, server.log
    assert server.log.endswith("stopped\n") or "did not end" in server.log
    return server.log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_calls_that_end_in_time_are_answered(number: signal.Signals, tmp_path: Path) -> None:
    """Hundreds of calls that run at the signal are answered and recorded, and the exit code is 0."""
    records = tmp_path / "audit.jsonl"
    async with over_http(AXOLOTL_AUDIT__JSONL_PATH=str(records)) as server:
        arguments = {"total": CALLS, "seconds": 0.5}
        calls = [
            asyncio.ensure_future(answer_to(server.port, "work_together", {**arguments, "number": one}, id=one))
            for one in range(CALLS)
        ]
        await server.until("all calls run")
        server.tell(number)
        answers = await asyncio.gather(*calls)
        log = await ended_well(server)
    assert [answer["structuredContent"] for answer in answers] == list(range(CALLS))
    assert f"{TOLD} {number.name}: the server is no longer ready" in log
    assert f"new calls are refused; running calls: {CALLS}, which get at most 25 seconds" in log
    assert "is stopped" not in log
    written = [json.loads(line) for line in records.read_text().splitlines()]
    assert sum(one["event"] == "end" for one in written) == CALLS


async def test_hanging_code_is_stopped_and_answered() -> None:
    """Code that hangs in any way is answered with the reason, and the process ends."""
    stuck = ["hang", "swallow", "block", "spin"]
    async with over_http("tests.support.containers.shutdown_tools:Stuck", AXOLOTL_HTTP__DRAIN_SECONDS="0.2") as server:
        calls = [asyncio.ensure_future(answer_to(server.port, name)) for name in stuck]
        for name in stuck:
            await server.until(f"{name} runs")
        server.tell()
        began = time.monotonic()
        answers = await asyncio.gather(*calls)
        log = await ended_well(server)
        took = server.ended_at - began
    assert {answer["_meta"]["axolotl/reason"] for answer in answers} == {"shutdown"}
    assert took < 0.2 + 2 + SLACK
    for name in stuck:
        assert f"tool {name}, request 1, is stopped: shutdown" in log
    assert "Traceback" not in log


async def test_idle_streams_do_not_delay_shutdown(http: httpx2.AsyncClient) -> None:
    """Idle streams are ended, and incomplete requests are dropped."""
    async with over_http(AXOLOTL_HTTP__DRAIN_SECONDS=str(LONG)) as server, connection(server.port) as (reader, writer):
        client = Client(http, f"http://127.0.0.1:{server.port}/mcp")
        await client.begin()
        listen = message("subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": META}, id="l")
        writer.write(raw_request(listen, mirrored("subscriptions/listen").items()))
        await reader.readuntil(b"acknowledged")
        whole = posted("echo", {"text": "x"})
        async with connection(server.port) as half_body, connection(server.port) as half_head:
            half_body[1].write(whole[:-10])
            half_head[1].write(whole[:20])
            await half_body[1].drain()
            assert (await probe(server.port)).status == 200
            async with client.hearing() as news:
                server.tell()
                began = time.monotonic()
                closing = await reader.read()
                assert all(event.data == "" or event.retry for event in await news.rest())
                assert (await read_head(half_body[0]))[0] == 503
                assert await half_head[0].read() == b""
                await ended_well(server)
    assert b'"resultType":"complete"' in closing
    assert server.ended_at - began < SLACK


async def test_a_server_that_stops_is_not_ready_and_takes_no_calls() -> None:
    """After the signal, probes get 503, and calls, streams and sessions are rejected with a retry hint."""
    async with over_http() as server:
        assert (await probe(server.port)).status == 200
        running = asyncio.ensure_future(answer_to(server.port, "hang"))
        await server.until("hang runs")
        server.tell()
        began = time.monotonic()
        while (answer := await probe(server.port)).status == 200:
            pass
        assert time.monotonic() - began < SLACK
        assert json.loads(answer.body)["checks"] == {"serving": {"status": "failed"}}
        assert (await probe(server.port, "/livez")).status == 200
        await server.until("new calls are refused")
        refused = await answer_to(server.port, "echo", {"text": "x"})
        assert refused["isError"]
        assert refused["_meta"]["axolotl/retryAfterMs"] == 1000
        await refuse_streams(server.port)
        server.tell()
        assert (await running)["_meta"]["axolotl/reason"] == "shutdown"
        await ended_well(server)


async def refuse_streams(port: int) -> None:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS) as http:
        session = await http.post("/mcp", content=message("initialize", INITIALIZE), headers=JSON_HEADERS)
        assert (session.status_code, session.json()["error"]["data"]) == (503, {"retryAfterMs": 1000})
        wanted = message("subscriptions/listen", {"notifications": {}, "_meta": META})
        listening = await http.post("/mcp", content=wanted, headers=mirrored("subscriptions/listen"))
        assert listening.json()["error"]["data"] == {"reason": "shutdown", "retryAfterMs": 1000}


async def test_calls_are_accepted_during_the_shutdown_delay() -> None:
    """During the shutdown delay the server is not ready but still works, and asks clients to reconnect."""
    async with over_http(AXOLOTL_HTTP__DRAIN_DELAY_SECONDS=str(LONG)) as server:
        async with connection(server.port) as (reader, writer):
            writer.write(posted("echo", {"text": "early"}))
            assert "connection" not in (await read_reply(reader)).headers
            server.tell()
            await server.until("calls are still accepted for 60 seconds")
            assert (await probe(server.port)).status == 503
            writer.write(posted("echo", {"text": "late"}))
            reply = await read_reply(reader)
            assert (reply.status, reply.headers["connection"]) == (200, "close")
            assert b'"late"' in reply.body
            assert await reader.read() == b""
        began = time.monotonic()
        server.tell()
        await ended_well(server)
    assert server.ended_at - began < SLACK


async def test_a_second_signal_hastens() -> None:
    """A second signal stops running calls at once, and the server ends within two seconds."""
    async with over_http(AXOLOTL_HTTP__DRAIN_SECONDS=str(LONG)) as server:
        calls = [asyncio.ensure_future(answer_to(server.port, name)) for name in ("hang", "swallow", "block")]
        for name in ("hang", "swallow", "block"):
            await server.until(f"{name} runs")
        server.tell()
        await server.until("new calls are refused")
        server.tell()
        began = time.monotonic()
        answers = await asyncio.gather(*calls)
        assert await server.ended() == 0
        took = server.ended_at - began
    assert {answer["_meta"]["axolotl/reason"] for answer in answers} == {"shutdown"}
    assert took < 2 + SLACK
    assert "did not end" in server.log


async def test_the_end_is_forced() -> None:
    """A server that does not close is killed two seconds after the second signal, and logs where it hangs."""
    async with over_http("tests.support.containers.shutdown_tools:SlowToClose") as server:
        server.tell()
        await server.until("closing for ever")
        server.tell()
        began = time.monotonic()
        assert await server.ended() == 1
    assert server.ended_at - began < 2 + SLACK
    assert "did not stop within 2 seconds: exiting" in server.log
    assert "sleep_long()" in server.log


async def test_a_third_signal_ends_the_process() -> None:
    """A third signal ends the process at once."""
    async with over_http("tests.support.containers.shutdown_tools:SlowToClose") as server:
        server.tell()
        await server.until("closing for ever")
        began = time.monotonic()
        ending = asyncio.ensure_future(server.ended())
        while not ending.done():
            server.tell()
            await asyncio.wait((ending,), timeout=0.05)  # two simultaneous signals count as one
        assert await ending == 128 + signal.SIGTERM
    assert time.monotonic() - began < SLACK


async def test_a_blocked_loop_does_not_prevent_shutdown() -> None:
    """If the event loop is blocked, the process ends when all grace periods have passed."""
    settings = {"AXOLOTL_HTTP__DRAIN_SECONDS": "0.2", **constants({"axolotl_cli.runtime.CLOSE_SECONDS": 0.5})}
    async with over_http(**settings) as server, connection(server.port) as (_, writer):
        writer.write(posted("hold_the_loop"))
        await server.until("hold_the_loop runs")
        server.tell()
        began = time.monotonic()
        assert await server.ended() == 1
    assert server.ended_at - began < 0.7 + SLACK
    assert "did not stop within 0.7 seconds: exiting" in server.log
    assert "in hold_the_loop" in server.log


async def test_resources_are_closed_after_the_last_answer() -> None:
    """Resources are closed after the last reply, dependents first, and a failure does not stop the others."""
    async with over_http(AXOLOTL_HTTP__DRAIN_SECONDS="0.2") as server:
        running = asyncio.ensure_future(answer_to(server.port, "hang"))
        await server.until("hang runs")
        assert "closed" not in server.log
        server.tell()
        await running
        log = await ended_well(server)
    lines = ["is stopped: shutdown", "journal closed", "journal is full", "cache closed", "database closed", "stopped"]
    places = [log.rindex(line) for line in lines]
    assert places == sorted(places), log
    assert "resource journal could not be closed" in log


async def test_subscribers_are_notified_of_stopped_tasks() -> None:
    """Subscribers are notified of stopped tasks before their stream ends."""
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": TASKS}
    async with over_http(AXOLOTL_HTTP__DRAIN_SECONDS="0.2") as server, connection(server.port) as (reader, writer):
        begun = message("tools/call", {"name": "linger", "arguments": {}, "_meta": meta})
        task = await posted_reply(server.port, raw_request(begun, mirrored(name="linger").items()))
        await server.until("linger runs")
        wanted = {"notifications": {"taskIds": [task["taskId"]]}, "_meta": meta}
        listen = message("subscriptions/listen", wanted, id="l")
        writer.write(raw_request(listen, mirrored("subscriptions/listen").items()))
        await reader.readuntil(b"acknowledged")
        server.tell()
        told = await reader.read()
        await ended_well(server)
    assert b"notifications/tasks" in told
    assert b'"axolotl/reason":"shutdown"' in told
    assert told.index(b"notifications/tasks") < told.index(b'"resultType":"complete"')


async def posted_reply(port: int, request: bytes) -> Any:
    async with connection(port) as (reader, writer):
        writer.write(request)
        _, headers = await read_head(reader)
        return json.loads(await reader.readexactly(int(headers["content-length"])))["result"]
