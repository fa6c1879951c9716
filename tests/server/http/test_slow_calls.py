"""Slow calls over HTTP that send no messages: their clients get an event stream after a while."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from tests.support.peers.session_client import Client
from tests.support.peers.wire import JSON_HEADERS, call, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import Probe, container_of

SOON = {"http": {"keep_alive_seconds": 0.04}}
COMMENT = ": keep-alive"


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client


def forgotten(server: HttpServer) -> bool:
    """Whether no response is kept alive any more."""
    return not server.app.keep_alive._members


async def test_a_slow_call_becomes_a_stream(http: httpx2.AsyncClient) -> None:
    """The response begins after an interval without messages, gets comments, and ends with the reply."""
    probe = Probe()
    async with serving(container_of(probe), SOON) as server:
        async with http.stream("POST", server.url, content=call("probe", id=7), headers=mirrored(name="probe")) as slow:
            assert (slow.status_code, slow.headers["content-type"]) == (200, "text/event-stream")
            lines = slow.aiter_lines()
            assert [await anext(lines) for _ in range(3)] == [COMMENT] * 3
            probe.release.set()
            rest = [line async for line in lines if line != COMMENT]
        assert rest[0] == "event: message"
        assert '"id":7,' in rest[1]
        await until(lambda: forgotten(server))


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18"])
async def test_a_slow_call_in_a_session(http: httpx2.AsyncClient, version: str) -> None:
    """The same in a session of a revision whose clients cannot resume the reply."""
    probe = Probe()
    async with serving(container_of(probe), SOON) as server:
        client = Client(http, server.url)
        await client.begin(version)
        async with client.calling(call("probe", id=7, handshake=True)) as reader:
            probe.release.set()
            assert [event.message["id"] for event in await reader.rest()] == [7]


async def test_a_slow_call_can_be_resumed(http: httpx2.AsyncClient) -> None:
    """A client that can resume gets an event ID first, and with it the reply after it has lost its connection."""
    probe = Probe()
    async with serving(container_of(probe), SOON) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.calling(call("probe", id=7, handshake=True)) as reader:
            primed = await reader.take()
        assert primed.is_priming
        async with client.hearing(primed.id) as reader:
            probe.release.set()
            assert [event.message["id"] for event in await reader.rest() if event.data] == [7]


async def test_a_call_within_the_interval_stays_plain(http: httpx2.AsyncClient) -> None:
    """A call that is watched, but ends before the interval, is answered with JSON."""
    probe = Probe()
    async with serving(container_of(probe)) as server:
        client = Client(http, server.url)
        await client.begin()
        for body, headers in (
            (call("probe"), mirrored(name="probe")),
            (call("probe", handshake=True), {**JSON_HEADERS, **client.headers}),
        ):
            probe.release.clear()
            calling = asyncio.ensure_future(http.post(server.url, content=body, headers=headers))
            await until(lambda: not forgotten(server))
            probe.release.set()
            assert (await calling).headers["content-type"] == "application/json"
            assert forgotten(server)


async def test_a_client_without_streams_waits(http: httpx2.AsyncClient) -> None:
    """A client that does not accept event streams gets JSON, however long the call takes."""
    probe = Probe()
    async with serving(container_of(probe), SOON) as server:
        headers = {**mirrored(name="probe"), "Accept": "application/json"}
        calling = asyncio.ensure_future(http.post(server.url, content=call("probe"), headers=headers))
        await until(lambda: not forgotten(server))
        await until(lambda: forgotten(server))
        probe.release.set()
        reply = await calling
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")


async def test_a_streamed_reply_is_primed_at_once(http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `sessions.resumable` = `replies`, the event ID does not wait for an interval."""
    probe = Probe()
    monkeypatch.setattr("axolotl_server.calls.running_call._WATCH_AFTER_SECONDS", 60)
    async with serving(container_of(probe), {"sessions": {"resumable": "replies"}}) as server:
        client = Client(http, server.url)
        await client.begin()
        async with client.calling(call("probe", id=7, handshake=True)) as reader:
            assert (await reader.take()).is_priming
            probe.release.set()
            assert (await reader.take()).message["id"] == 7


async def test_a_client_that_leaves_a_slow_call(http: httpx2.AsyncClient) -> None:
    """A stateless call whose response has begun is still cancelled by a disconnect."""
    probe = Probe()
    async with serving(container_of(probe), SOON) as server:
        async with http.stream("POST", server.url, content=call("probe"), headers=mirrored(name="probe")) as slow:
            assert await anext(slow.aiter_lines()) == COMMENT
        async with asyncio.timeout(PATIENCE_SECONDS):
            await probe.cancelled.wait()
        await until(lambda: forgotten(server))
