"""Limits on connections: how many there may be, how much they may hold, and how long they may stall."""

import asyncio
import http.client
import json
import select
import socket
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from axolotl_core import tool
from axolotl_server import ServerHost
from axolotl_server.http.asgi import BodyBudget, Message, read_body
from axolotl_server.http.server.connections import WRITE_TIMEOUT_SECONDS, StallCheck
from axolotl_server.http.server.serve import serve_http
from axolotl_server.settings.transports import HttpSettings
from tests.support.peers.wire import RawReply, call, connection, mirrored, raw_exchange, raw_request, read_reply
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, free_port, serving, until
from tests.support.tools import Echo, Holding, container_of

MIB = 1024 * 1024
REQUEST = raw_request(call("echo", {"text": "hello"}), mirrored(name="echo").items())


@tool
async def large(size: int) -> str:
    """Return a long text."""
    return "x" * size


def asking_for(size: int) -> bytes:
    """Return a request for a large result."""
    return raw_request(call("large", {"size": size}), mirrored(name="large").items())


def unfinished(size: int, announced: int) -> bytes:
    """Return a request of whose body only the beginning is sent."""
    head = raw_request(b"", mirrored(name="echo").items()).replace(b"Length: 0", b"Length: %d" % announced)
    return head + b" " * size


@asynccontextmanager
async def checked(**http: Any) -> AsyncIterator[int]:
    """Serve with the regular checks of connections, and give the port."""
    async with ServerHost(
        container_of(Echo(), large), flags={"http": http, "limits": {"max_result_bytes": 32 * MIB}}
    ) as host:
        listener, started = free_port(), asyncio.Event()
        serving = asyncio.create_task(serve_http(host, listener, on_serving=started.set))
        await started.wait()
        try:
            yield listener.getsockname()[1]
        finally:
            host.stop_signal.set()
            await serving


async def test_more_connections_than_allowed_are_refused() -> None:
    """A connection beyond the limit gets 503; once another one has ended, the next is served."""
    async with serving(container_of(Echo()), {"http": {"max_connections": 2}}) as server, AsyncExitStack() as stack:
        for _ in range(2):
            reader, writer = await stack.enter_async_context(connection(server.port))
            writer.write(REQUEST)
            assert (await read_reply(reader)).status == 200
        refused = await raw_exchange(server.port, REQUEST)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert "too many connections" in refused.error["message"]
        writer.close()
        await until(lambda: server.app.refused[503] == 1 and _open_connections(server) < 2)
        assert (await raw_exchange(server.port, REQUEST)).status == 200


def _open_connections(server: HttpServer) -> int:
    return sum(not one.transport.is_closing() for one in server.server.connections)


async def test_one_address_cannot_take_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address has a limit of its own; loopback addresses and trusted proxies have none."""
    assert (await second_connection()).status == 200
    monkeypatch.setattr("axolotl_server.http.server.connection_limits.share_of_address", lambda address: (address,))
    assert (await second_connection(trusted_proxies=["127.0.0.0/8"])).status == 200
    refused = await second_connection()
    assert (refused.status, refused.error["message"]) == (
        503,
        "Service unavailable: this address has too many connections; try again later",
    )


async def second_connection(**http: Any) -> RawReply:
    """Send a request over the second connection of an address that may have one."""
    settings = {"http": {"max_connections": 10, **http}}
    async with serving(container_of(Echo()), settings) as server, connection(server.port) as (reader, writer):
        writer.write(REQUEST)
        assert (await read_reply(reader)).status == 200
        return await raw_exchange(server.port, REQUEST)


@pytest.mark.parametrize("shares", [False, True])
async def test_large_bodies_of_running_calls_are_limited(shares: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls with large arguments share a budget while they run, half of it for one caller; small ones do not count."""
    if shares:
        monkeypatch.setattr("axolotl_server.protocol.fair_share.share_of_address", lambda address: (address,))
    holding, settings = Holding(), {"http": {"max_buffer_bytes": 6 * MIB}}
    async with serving(container_of(holding, Echo()), settings) as server, AsyncExitStack() as stack:
        running = 1 if shares else 3
        request = raw_request(call("holding", {"text": "x" * (2 * MIB - 1024)}), mirrored(name="holding").items())
        opened = [await stack.enter_async_context(connection(server.port)) for _ in range(running)]
        for _, writer in opened:
            writer.write(request)
        await until(lambda: holding.running == running)
        refused = await raw_exchange(server.port, request)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert refused.error["data"] == {"reason": "overloaded", "retryAfterMs": 1000}
        assert (await raw_exchange(server.port, REQUEST)).status == 200
        holding.release.set()
        assert [(await read_reply(reader)).status for reader, _ in opened] == [200] * running
        assert (await raw_exchange(server.port, request)).status == 200
        assert server.app.running_bodies.used == 0


async def test_a_body_above_the_limit_of_its_caller_can_be_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that may be sent is served, although it is larger than what one caller may have."""
    monkeypatch.setattr("axolotl_server.protocol.fair_share.share_of_address", lambda address: (address,))
    async with serving(container_of(Echo()), {"http": {"max_buffer_bytes": 3 * MIB // 2}}) as server:
        request = raw_request(call("echo", {"text": "x" * MIB}), mirrored(name="echo").items())
        assert (await raw_exchange(server.port, request)).status == 200


async def test_incomplete_bodies_are_limited_in_total() -> None:
    """Bodies that do not arrive completely share one budget; it is free again when their clients leave."""
    settings = {"http": {"max_buffer_bytes": 3 * MIB}}
    async with serving(container_of(Echo()), settings) as server:
        async with AsyncExitStack() as stack:
            for _ in range(2):
                _, writer = await stack.enter_async_context(connection(server.port))
                writer.write(unfinished(MIB, 2 * MIB))
            await until(lambda: server.app.bodies.used >= 2 * MIB - 1024)
            refused = await raw_exchange(server.port, unfinished(2 * MIB, 3 * MIB))
            assert (refused.status, refused.headers["connection"]) == (503, "close")
            assert "too many bodies" in refused.error["message"]
            assert (await raw_exchange(server.port, REQUEST)).status == 200
        await until(lambda: server.app.bodies.used == 0)


async def test_bodies_that_wait_in_a_pipeline_share_that_budget() -> None:
    """A body behind a request that is being answered counts, until it is its turn or its client leaves."""
    holding, settings = Holding(), {"http": {"max_buffer_bytes": 100_000}}
    first = raw_request(call("holding", {"text": "x"}), mirrored(name="holding").items())
    waiting = raw_request(call("echo", {"text": "y" * 40_000}), mirrored(name="echo").items())
    async with serving(container_of(holding, Echo()), settings) as server, AsyncExitStack() as stack:
        reader, writer = await stack.enter_async_context(connection(server.port))
        writer.write(first + waiting)
        await until(lambda: server.app.bodies.used > 40_000)
        async with connection(server.port) as (_, other):
            other.write(first + waiting)
            await until(lambda: server.app.bodies.used > 80_000)
            refused, late = await stack.enter_async_context(connection(server.port))
            late.write(first + waiting)
            await until(lambda: server.app.refused.get(503, 0) == 1)
        await until(lambda: server.app.bodies.used < 80_000)
        holding.release.set()
        assert [(await read_reply(reader)).status for _ in range(2)] == [200, 200]
        replies = [await read_reply(refused) for _ in range(2)]
        assert [reply.status for reply in replies] == [200, 503]
        assert replies[1].headers["connection"] == "close"
        writer.write(waiting)
        assert (await read_reply(reader)).status == 200
        late.close()
        await until(lambda: server.app.bodies.used == 0)


@pytest.mark.parametrize("size", [5 * MIB, 14 * MIB])
@pytest.mark.parametrize("chunks", [False, True])
async def test_a_client_that_sends_first_reads_the_refusal(size: int, chunks: bool) -> None:
    """A client that writes its whole body before it reads gets 413 instead of a reset connection."""

    def send(port: int) -> tuple[int, Any]:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        body: Any = pieces(size) if chunks else b"x" * size
        client.request("POST", "/mcp", body, mirrored(name="echo"), encode_chunked=chunks)
        reply = client.getresponse()
        return reply.status, json.loads(reply.read())

    def pieces(size: int) -> Iterator[bytes]:
        yield from (b"x" * 65536 for _ in range(size // 65536))

    async with serving(container_of(Echo())) as server:
        status, content = await asyncio.to_thread(send, server.port)
    assert status == 413
    assert "at most 4194304 bytes" in content["error"]["message"]


async def test_a_client_that_does_not_read_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A response that nobody reads is dropped with its connection, while others are served."""
    monkeypatch.setattr("axolotl_server.http.server.connections.WRITE_TIMEOUT_SECONDS", 0.3)
    async with checked() as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(asking_for(20 * MIB))  # more than the kernel buffers
            waiting = select.poll()
            waiting.register(client, 0)  # only errors: the client never reads
            await until(lambda: waiting.poll(0))
        assert (await raw_exchange(port, REQUEST)).status == 200


@pytest.mark.parametrize(("size", "count"), [(MIB // 4, 8), (1, 100_000)])
async def test_an_incomplete_body_is_held_once(size: int, count: int) -> None:
    """While the rest of a body is awaited, its memory is about the bytes that count for the limit."""
    budget, waiting, left = BodyBudget(4 * MIB), asyncio.Event(), count

    async def receive() -> Message:
        nonlocal left
        if not left:
            waiting.set()
            await asyncio.Event().wait()
        left -= 1
        return {"type": "http.request", "body": b"x" * size, "more_body": True}

    tracemalloc.start()
    try:
        reading = asyncio.create_task(read_body({}, receive, 4 * MIB, budget))
        await asyncio.wait_for(waiting.wait(), PATIENCE_SECONDS)
        snapshot = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    assert budget.used == size * count
    here = [tracemalloc.Filter(True, filename) for filename in (__file__, read_body.__code__.co_filename)]
    held = sum(trace.size for trace in snapshot.filter_traces(here).traces)
    assert held < budget.used * 1.1 + 16 * 1024
    reading.cancel()
    await asyncio.wait([reading])
    assert budget.used == 0


async def test_idle_connections_are_closed() -> None:
    """A connection on which no further request arrives is closed without a response."""
    async with checked(idle_timeout_seconds=0.3) as port, connection(port) as (reader, writer):
        writer.write(REQUEST)
        assert (await read_reply(reader)).status == 200
        assert await reader.read() == b""


class SlowReader:
    """A connection whose client reads as the test says."""

    def __init__(self, unread: int) -> None:
        self.unread = unread
        self.drained = 0
        self.cycle = object()
        self.part = None
        self.is_idle = self.has_unread_body = self.is_discarding = self.aborted = False
        self.transport = self

    def get_write_buffer_size(self) -> int:
        return self.unread

    def reset(self) -> None:
        self.aborted = True


def test_slow_but_steady_clients_are_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client is closed if it reads nothing for too long, not because its response takes long."""
    clock, check = [0.0], StallCheck(HttpSettings())
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    steady, refilled, stuck = SlowReader(MIB), SlowReader(50_000), SlowReader(MIB)
    for _ in range(100):
        check.check({steady, refilled, stuck})  # type: ignore[arg-type]
        clock[0] += 0.5
        steady.unread -= 1
        refilled.drained += 1
    assert (steady.aborted, refilled.aborted, stuck.aborted) == (False, False, True)


def test_unread_responses_are_limited_in_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """If clients leave too much unread, those that have read nothing for longest are closed."""
    clock, check = [0.0], StallCheck(HttpSettings())
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    early, late = [SlowReader(4 * MIB) for _ in range(10)], [SlowReader(4 * MIB) for _ in range(10)]
    check.check({*early})  # type: ignore[arg-type]
    clock[0] = 1.0
    check.check({*early, *late})  # type: ignore[arg-type]
    assert not any(one.aborted for one in (*early, *late))
    clock[0] = 2.5
    check.check({*early, *late})  # type: ignore[arg-type]
    assert sum(one.aborted for one in early) == 4
    assert not any(one.aborted for one in late)


def test_an_open_stream_is_closed_when_its_client_stops_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream with nothing to read stays open; the limit begins when something is unread."""
    settings = HttpSettings()
    clock, check, stream = [0.0], StallCheck(settings), SlowReader(0)
    monkeypatch.setattr("time.monotonic", lambda: clock[0])

    def pass_seconds(seconds: float) -> None:
        for _ in range(round(seconds * 2)):
            clock[0] += 0.5
            check.check({stream})  # type: ignore[arg-type]

    pass_seconds(60)
    stream.unread = 1
    pass_seconds(WRITE_TIMEOUT_SECONDS - 1)
    assert not stream.aborted
    pass_seconds(2)
    assert stream.aborted
