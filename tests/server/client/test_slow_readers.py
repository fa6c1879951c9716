"""The client against servers that send more notifications than it reads."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.protocol.messages import SUBSCRIPTION_KEY
from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, STATELESS_REVISIONS
from axolotl_server import Client, DefaultHandler, ServerHost, connect_url
from axolotl_server.client.channel import Inbox, InvalidReply, MemoryPipe, Message
from axolotl_server.client.connecting import connect_channel
from axolotl_server.client.event_reading import ClientLimits, StreamReceiver
from axolotl_server.client.process_channel import LineChannel
from axolotl_server.client.replies import Change
from axolotl_server.protocol.flow_control import MAX_WAITING, MAX_WAITING_BYTES
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.tools import container_of

STATELESS, HANDSHAKE = STATELESS_REVISIONS[-1].name, HANDSHAKE_REVISIONS[-1].name
OLD, NEW = "notes://old", "notes://new"
LARGE = 100_000
CAPABILITIES = {"tools": {}, "resources": {"subscribe": True}, "logging": {}}
RESULTS: dict[str, dict[str, Any]] = {
    "server/discover": {"supportedVersions": [STATELESS], "capabilities": CAPABILITIES},
    "initialize": {"protocolVersion": HANDSHAKE, "capabilities": CAPABILITIES, "serverInfo": {}},
    "tools/list": {"tools": []},
}


def answered(request: Any) -> bytes:
    """Answer a request."""
    content = {"resultType": "complete", **RESULTS.get(request["method"], {})}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": content}).encode()


def notified(method: str, request_id: Any = None, **params: Any) -> bytes:
    """Make a notification, for the subscription with this ID."""
    params |= {} if request_id is None else {"_meta": {SUBSCRIPTION_KEY: request_id}}
    return json.dumps({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}).encode()


def updated(uri: str, request_id: Any = None, size: int = 0) -> bytes:
    return notified("resources/updated", request_id, uri=uri, padding="x" * size)


class Flooding:
    """A server on a stream of lines, which sends what a test wants before it answers `tools/list`."""

    def __init__(self) -> None:
        self.flood: list[bytes] = []
        self.listening: int | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            request = json.loads(line)
            if "method" not in request:
                continue  # the answer to a question
            if request["method"] == "subscriptions/listen":
                self.listening = request["id"]
                writer.write(notified("subscriptions/acknowledged", self.listening, notifications={}) + b"\n")
            elif "id" in request:
                sent = self.flood if request["method"] == "tools/list" else []
                writer.write(b"\n".join([*sent, answered(request), b""]))
            await writer.drain()
        writer.close()


@asynccontextmanager
async def flooded(revision: str) -> AsyncIterator[tuple[Client, Flooding]]:
    """Connect a client to a server on a stream that carries the messages of all requests."""
    limits, server = ClientLimits(), Flooding()
    ours, theirs = socket.socketpair()
    serving = asyncio.ensure_future(server.serve(*await asyncio.open_connection(sock=theirs)))
    reader, writer = await asyncio.open_connection(sock=ours, limit=limits.max_message_bytes)
    channel = LineChannel(reader, writer, limits.max_message_bytes)
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with connect_channel(channel, None, None, revision, limits) as client:
            yield client, server
        await serving


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize(("size", "kept"), [(0, MAX_WAITING), (LARGE, MAX_WAITING_BYTES // LARGE)])
async def test_changes_that_nobody_reads(revision: str, size: int, kept: int, caplog: pytest.LogCaptureFixture) -> None:
    """On a stream with all messages, the oldest changes are dropped with a warning, and replies still arrive."""
    async with flooded(revision) as (client, server), client.listen(OLD, NEW, lists=()) as changes:
        old, new = updated(OLD, server.listening, size), updated(NEW, server.listening, size)
        server.flood = [old] * (3 * kept) + [new] * 2
        with caplog.at_level(logging.WARNING, "axolotl"):
            assert await client.list_tools() == []
        received = [(await anext(changes)).uri for _ in range(kept)]
        assert received == [OLD] * (kept - 2) + [NEW] * 2
        server.flood = [new]
        await client.list_tools()
        assert (await anext(changes)).uri == NEW  # nothing else was left
    warnings = [record.message for record in caplog.records]
    assert warnings[0] == "a server sends more than this client reads; notifications dropped so far: 1"
    assert len(warnings) == len(str(2 * kept + 2))  # for 1, 10, 100 and so on


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
async def test_log_messages_displace_no_changes(revision: str) -> None:
    """A listener gets the changes that it asked for, however many other messages arrive."""
    async with flooded(revision) as (client, server), client.listen(NEW, lists=()) as changes:
        log = notified("message", level="info", data="x" * 1000)
        server.flood = [updated(NEW, server.listening), *[log] * (2 * MAX_WAITING)]
        await client.list_tools()
        server.flood = [updated(NEW, server.listening)]
        await client.list_tools()
        assert [await anext(changes) for _ in range(2)] == [Change("notifications/resources/updated", NEW)] * 2


async def test_questions_without_end() -> None:
    """A server that asks more than can wait is left with an error; questions are never dropped silently."""
    async with flooded(HANDSHAKE) as (client, server):
        question = {"jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": {"padding": "x" * LARGE}}
        server.flood = [json.dumps([question] * 20).encode()]
        with pytest.raises(InvalidReply, match=f"more than {MAX_WAITING_BYTES} bytes of questions"):
            await client.list_tools()


async def test_pings_of_a_server_that_does_not_read() -> None:
    """Answers that nobody reads wait only up to the limit; then the request fails."""
    limits = ClientLimits(max_message_bytes=10_000)
    ours, theirs = socket.socketpair()

    async def ping_without_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answered(json.loads(await reader.readline())) + b"\n")
        ping = json.dumps({"jsonrpc": "2.0", "id": "x" * 1000, "method": "ping"}).encode()
        try:
            while True:
                writer.write(ping + b"\n")
                await writer.drain()
        finally:
            writer.transport.abort()

    pinging = asyncio.ensure_future(ping_without_end(*await asyncio.open_connection(sock=theirs)))
    reader, writer = await asyncio.open_connection(sock=ours, limit=limits.max_message_bytes)
    channel = LineChannel(reader, writer, limits.max_message_bytes)
    async with connect_channel(channel, None, None, HANDSHAKE, limits) as client:
        with pytest.raises(ConnectionError, match="does not read its input: over 10000 bytes wait"):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await client.list_tools()
        pinging.cancel()


class Stuck(MemoryPipe):
    """A channel whose answers are never taken."""

    def __init__(self, handler: DefaultHandler) -> None:
        super().__init__(handler, ANONYMOUS)
        self.answers = 0

    async def send(self, message: Message) -> None:
        if "method" in message:
            await super().send(message)
            return
        self.answers += 1
        await asyncio.Event().wait()


async def test_pings_while_answers_are_not_taken() -> None:
    """Only some answers wait until they can be sent; further pings are not answered."""
    async with ServerHost(container_of()) as host:
        channel = Stuck(host.handler)
        async with connect_channel(channel, None, None, HANDSHAKE, ClientLimits()) as client:
            for number in range(2 * MAX_WAITING):
                channel.receive({"jsonrpc": "2.0", "id": number, "method": "ping"})
            assert await client.list_tools() == []
    assert channel.answers == MAX_WAITING


class Streaming:
    """An HTTP server whose subscriptions get a number of large changes."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.written = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            request = json.loads(await reader.readexactly(length))
            await (self._stream if request["method"] == "subscriptions/listen" else self._answer)(request, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _answer(self, request: Any, writer: asyncio.StreamWriter) -> None:
        body = answered(request)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "
        writer.write(b"%b%d\r\n\r\n%b" % (head, len(body), body))

    async def _stream(self, request: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        writer.write(b"data: %b\n\n" % notified("subscriptions/acknowledged", request["id"], notifications={}))
        for number in range(1, self.count + 1):
            writer.write(b"data: %b\n\n" % updated(f"notes://{number}", request["id"], LARGE))
            await writer.drain()
            self.written = number
        writer.write(b"data: %b\n\n" % answered(request))


async def test_a_stream_of_its_own_waits_for_its_reader() -> None:
    """Over HTTP, no more of a subscription is read than fits; nothing is lost, and other requests are answered."""
    served = Streaming(count=600)
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        server,
        connect_url(url, revision=STATELESS) as client,
        client.listen(NEW, lists=()) as changes,
    ):
        before = -1
        while served.written > before:  # the server writes until all buffers between both are full
            before = served.written
            for _ in range(20):
                await client.list_tools()
        assert served.written < served.count
        uris = [change.uri async for change in changes]
    assert uris == [f"notes://{number}" for number in range(1, served.count + 1)]


@pytest.mark.parametrize(
    ("milliseconds", "seconds"), [("0", 0.1), ("99", 0.1), ("2500", 2.5), ("30001", 30), ("9" * 40, 30), ("soon", 1)]
)
async def test_the_pause_before_a_reconnect(milliseconds: str, seconds: float) -> None:
    """A server chooses the pause, but neither none nor an endless one."""

    async def body() -> AsyncIterator[bytes]:
        yield b"id: 1\nretry: %b\ndata:\n\n" % milliseconds.encode()

    receiver = StreamReceiver(1, Inbox().put_when_room, ClientLimits(), is_endless=True)
    await receiver.read_events(body())
    assert receiver.retry_seconds == seconds
