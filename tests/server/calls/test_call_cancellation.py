"""Calls that end early: by the client, a disconnect, a timeout or a shutdown."""

import asyncio
import threading
from typing import Any

import httpx2
import pytest

from axolotl_core import Context, ITool, NoArguments, tool
from axolotl_core.calls.cancellation import CancelReason
from axolotl_server import HttpApp, ServerHost
from tests.support.peers.memory_peer import Peer
from tests.support.peers.wire import (
    INITIALIZE,
    JSON_HEADERS,
    call,
    connection,
    message,
    mirrored,
    raw_request,
    read_head,
)
from tests.support.servers.serving import PATIENCE_SECONDS, serving, until
from tests.support.tools import Echo, Probe, container_of


async def patiently(waiting: Any) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await waiting


@pytest.mark.parametrize("handshake", [True, False])
async def test_a_client_cancels_its_call(handshake: bool) -> None:
    """The tool is canceled and knows the reason, and no reply is sent."""
    probe = Probe()
    async with ServerHost(container_of(probe)) as host:
        peer = await Peer(host).shake_hands() if handshake else Peer(host)
        peer.call("probe", id=7)
        await patiently(probe.started.wait())
        peer.cancel(7)
        await patiently(probe.cancelled.wait())
        assert probe.context is not None
        assert probe.context.cancel_reason is CancelReason.CLIENT
        assert await peer.close() == []
        assert len(host.handler.inflight) == 0


async def test_a_connection_cancels_its_own_calls_only() -> None:
    """The same id on another connection is a different request."""
    probe = Probe()
    async with ServerHost(container_of(probe)) as host:
        mine, theirs = Peer(host), Peer(host)
        theirs.call("probe", id=7)
        await patiently(probe.started.wait())
        mine.cancel(7)
        await mine.settle()
        assert not probe.cancelled.is_set()
        probe.release.set()
        assert [reply["id"] for reply in await theirs.close()] == [7]
        await mine.close()


async def test_a_tool_that_ignores_its_cancellation_is_not_answered() -> None:
    """The result of a canceled tool is dropped."""

    class Stubborn(ITool[NoArguments, str]):
        name = "stubborn"
        started = asyncio.Event()

        async def execute(self, arguments: NoArguments, context: Context) -> str:
            self.started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
            return "anyway"

    stubborn = Stubborn()
    async with ServerHost(container_of(stubborn, Echo())) as host:
        peer = Peer(host)
        peer.call("stubborn", id=1)
        await patiently(stubborn.started.wait())
        peer.cancel(1)
        peer.call("echo", {"text": "next"}, id=2)
        assert [reply["id"] for reply in await peer.close()] == [2]


async def test_a_thread_learns_that_it_is_cancelled() -> None:
    """A canceled thread sees the reason, and its caller is released at once."""
    started, go_on, seen = threading.Event(), threading.Event(), threading.Event()

    @tool(execution="thread")
    def dig(context: Context) -> str:
        started.set()
        go_on.wait(PATIENCE_SECONDS)
        if context.cancelled and context.cancel_reason is CancelReason.CLIENT:
            seen.set()
        context.raise_if_cancelled()
        return "dug"

    async with ServerHost(container_of(dig)) as host:
        peer = Peer(host)
        peer.call("dig", id=1)
        await asyncio.to_thread(started.wait, PATIENCE_SECONDS)
        peer.cancel(1)
        assert await peer.close() == []
        go_on.set()
        assert await asyncio.to_thread(seen.wait, PATIENCE_SECONDS)


@pytest.mark.parametrize("transport", ["memory", "http"])
async def test_late_progress_of_a_thread_is_dropped(transport: str) -> None:
    """Progress of a thread whose call has ended is dropped."""
    may_go_on, done = threading.Event(), threading.Event()

    @tool(execution="thread", timeout_seconds=0.02)
    def dig(context: Context) -> None:
        context.report_progress(1)
        may_go_on.wait(PATIENCE_SECONDS)
        context.report_progress(2)
        done.set()

    async with ServerHost(container_of(dig, Echo())) as host:
        if transport == "memory":
            peer = Peer(host)
            peer.call("dig", id=1, progressToken=1)
            assert [(await peer.receive()).get("id") for _ in range(2)] == [None, 1]
        else:
            sent = await patiently(asgi_exchange(HttpApp(host.handler, host.settings), call("dig", token=1), "dig"))
        may_go_on.set()
        assert await asyncio.to_thread(done.wait, PATIENCE_SECONDS)
        await asyncio.sleep(0)
        if transport == "memory":
            assert await peer.close() == []
        else:
            assert sent[-1] == {"type": "http.response.body", "body": b""}


async def asgi_exchange(app: HttpApp, body: bytes, name: str) -> list[Any]:
    headers = [(key.lower().encode(), value.encode()) for key, value in mirrored(name=name).items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [*headers, (b"host", b"localhost")]}
    received, sent = [{"type": "http.request", "body": body}], []

    async def receive() -> Any:
        return received.pop() if received else await asyncio.Event().wait()

    async def send(event: Any) -> None:
        sent.append(event)

    await app(scope, receive, send)
    return sent


@pytest.mark.parametrize("streaming", [False, True])
async def test_leaving_cancels_a_stateless_call(streaming: bool) -> None:
    """Closing the connection cancels a stateless call, before the reply and during a stream."""
    probe = Probe(progress=streaming)
    async with serving(container_of(probe)) as server:
        async with connection(server.port) as (reader, writer):
            body = call("probe", token=1 if streaming else None)
            writer.write(raw_request(body, mirrored(name="probe").items()))
            await patiently(probe.started.wait())
            if streaming:
                status, headers = await read_head(reader)
                assert (status, headers["content-type"]) == (200, "text/event-stream")
                await reader.readuntil(b"notifications/progress")
        await patiently(probe.cancelled.wait())
        assert probe.context is not None
        assert probe.context.cancel_reason is CancelReason.DISCONNECT
        await until(lambda: not server.host.handler.inflight)


async def test_leaving_at_once_is_noticed_later() -> None:
    """A disconnect before the call is noticed later."""
    probe = Probe()
    async with serving(container_of(probe)) as server:
        async with connection(server.port) as (_, writer):
            writer.write(raw_request(call("probe"), mirrored(name="probe").items()))
            await writer.drain()
        await patiently(probe.cancelled.wait())


async def test_a_disconnect_cancels_its_own_call_only() -> None:
    """A disconnect does not affect other clients with the same id."""
    probe = Probe()
    async with serving(container_of(probe)) as server:
        request = raw_request(call("probe", id=1), mirrored(name="probe").items())
        async with connection(server.port) as (reader, staying):
            staying.write(request)
            await patiently(probe.started.wait())
            probe.started.clear()
            async with connection(server.port) as (_, leaving):
                leaving.write(request)
                await patiently(probe.started.wait())
            await patiently(probe.cancelled.wait())
            probe.release.set()
            assert (await read_head(reader))[0] == 200


@pytest.mark.parametrize("streaming", [False, True])
async def test_leaving_does_not_cancel_a_call_of_a_session(streaming: bool) -> None:
    """A lost connection does not cancel a call in a session."""
    probe, other = Probe(progress=streaming), Probe()
    other.name = "other"
    async with serving(container_of(probe, other)) as server, httpx2.AsyncClient(verify=False) as http:
        reply = await http.post(server.url, content=message("initialize", INITIALIZE), headers=dict(JSON_HEADERS))
        headers = {**JSON_HEADERS, "Mcp-Session-Id": reply.headers["mcp-session-id"]}
        await http.post(server.url, content=message("notifications/initialized", id=None), headers=headers)
        async with connection(server.port) as (reader, writer):
            body = call("probe", handshake=True, token=1 if streaming else None)
            writer.write(raw_request(body, headers.items()))
            await patiently(probe.started.wait())
            if streaming:
                await reader.readuntil(b"notifications/progress")
        # After the stateless disconnect is noticed, the other one would have been noticed too.
        async with connection(server.port) as (_, writer):
            writer.write(raw_request(call("other"), mirrored(name="other").items()))
            await patiently(other.started.wait())
        await patiently(other.cancelled.wait())
        assert not probe.cancelled.is_set()
        probe.release.set()
        await until(lambda: not server.host.handler.inflight)
        assert probe.context is not None
        assert not probe.context.cancelled


async def test_a_session_cancels_its_call_by_a_notification() -> None:
    """A canceled request in a session gets no reply, but its HTTP response ends, because the client waits for that."""
    probe = Probe()
    async with serving(container_of(probe)) as server, httpx2.AsyncClient(verify=False) as http:
        reply = await http.post(server.url, content=message("initialize", INITIALIZE), headers=dict(JSON_HEADERS))
        headers = {**JSON_HEADERS, "Mcp-Session-Id": reply.headers["mcp-session-id"]}
        await http.post(server.url, content=message("notifications/initialized", id=None), headers=headers)
        running = asyncio.ensure_future(
            http.post(server.url, content=call("probe", id=5, handshake=True), headers=headers)
        )
        await patiently(probe.started.wait())
        cancelled = message("notifications/cancelled", {"requestId": 5}, id=None)
        assert (await http.post(server.url, content=cancelled, headers=headers)).status_code == 202
        response = await patiently(running)
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")
        assert response.text == ""
        assert probe.cancelled.is_set()


async def test_a_deadline_ends_a_call() -> None:
    """On a timeout the tool is canceled and knows the reason, and the model gets an error."""
    probe = Probe()
    probe.timeout_seconds = 0.02
    async with ServerHost(container_of(probe)) as host:
        peer = Peer(host)
        peer.call("probe")
        await patiently(probe.cancelled.wait())
        (reply,) = await peer.close()
    assert reply["result"]["content"][0]["text"] == "Tool probe did not finish within 0.02 seconds"
    assert reply["result"]["isError"] is True
    assert probe.context is not None
    assert probe.context.cancel_reason is CancelReason.TIMEOUT


async def test_a_deadline_ends_a_call_that_swallows_its_cancellation() -> None:
    """A tool that ignores its timeout gets one reply about the timeout."""

    class Deaf(ITool[NoArguments, str]):
        name = "deaf"
        timeout_seconds = 0.01

        async def execute(self, arguments: NoArguments, context: Context) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("swallowed") from None
            return "never"

    async with ServerHost(container_of(Deaf(), Echo())) as host:
        peer = Peer(host)
        peer.call("deaf", id=1)
        reply = await peer.receive()
        assert reply["result"]["_meta"]["axolotl/reason"] == "timeout"
        peer.call("echo", id=2)
        assert [reply["id"] for reply in await peer.close()] == [2]


async def test_a_tool_knows_its_deadline() -> None:
    """A tool can read its remaining time."""

    class Clock(ITool[NoArguments, float]):
        name = "clock"
        timeout_seconds = 50.0

        async def execute(self, arguments: NoArguments, context: Context) -> float:
            assert context.remaining_seconds is not None
            return context.remaining_seconds

    async with ServerHost(container_of(Clock())) as host:
        peer = Peer(host)
        peer.call("clock")
        (reply,) = await peer.close()
    assert 40 < reply["result"]["structuredContent"] <= 50


async def test_closing_a_connection_answers_running_calls() -> None:
    """When the server closes a connection, running calls get an error that they can be retried."""
    probe = Probe()
    async with ServerHost(container_of(probe)) as host:
        peer = Peer(host)
        peer.call("probe")
        await patiently(probe.started.wait())
        (reply,) = await peer.close(0)
    assert reply["result"]["isError"] is True
    assert reply["result"]["_meta"]["axolotl/retryAfterMs"] == 1000
    assert probe.context is not None
    assert probe.context.cancel_reason is CancelReason.SHUTDOWN


async def test_a_tool_can_use_its_own_timeouts_and_groups() -> None:
    """Tools can use their own timeouts and task groups."""

    class Structured(ITool[NoArguments, str]):
        name = "structured"

        async def execute(self, arguments: NoArguments, context: Context) -> str:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await asyncio.Event().wait()
            async with asyncio.TaskGroup() as group:
                forever = group.create_task(asyncio.Event().wait())
                await asyncio.sleep(0)
                forever.cancel()
            return "fine"

    async with ServerHost(container_of(Structured())) as host:
        peer = Peer(host)
        peer.call("structured")
        (reply,) = await peer.close()
    assert reply["result"]["content"][0]["text"] == "fine"


async def test_a_deadline_reaches_into_the_timeouts_of_a_tool() -> None:
    """A timeout of the call inside a tool's own timeout is reported as the call's."""

    class Nested(ITool[NoArguments, str]):
        name = "nested"
        timeout_seconds = 0.02

        async def execute(self, arguments: NoArguments, context: Context) -> str:
            async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
                group.create_task(asyncio.Event().wait())
            return "never"

    async with ServerHost(container_of(Nested())) as host:
        peer = Peer(host)
        peer.call("nested")
        (reply,) = await peer.close()
    assert reply["result"]["_meta"]["axolotl/reason"] == "timeout"
