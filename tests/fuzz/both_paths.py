"""Requests that are sent to two servers: one may answer directly, the other sends everything through ASGI."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import httptools
from dependency_injector import providers

from tests.fuzz.container import SETTINGS, TOKEN, Container
from tests.fuzz.corpus import STATELESS
from tests.fuzz.framing import Request, mutate_request
from tests.fuzz.http_wire import Responses
from tests.support.audited_calls import MemorySink
from tests.support.peers.wire import META
from tests.support.servers.serving import HttpServer, serving, until

_QUIET_TURNS: Final = 300
"""For how many turns of the loop, which the servers share, nothing may arrive before the client goes on; some requests
are incomplete and get no response."""
_END_TURNS: Final = 30
"""In how many turns the end of a connection follows a response."""
_TOKENS: Final = (TOKEN, TOKEN, TOKEN, TOKEN, "wrong", "")
_LARGE: Final = 400_000
_VARYING: Final = re.compile(
    rb"(?im)^date: [^\r]*\r\n"
    rb'|(?<=reference":")[0-9a-f]+|(?<=Reference: )[0-9a-f]+|(?<=session=)[0-9a-f]+|(?<=retryAfterMs":)\d+'
)


@dataclass(frozen=True)
class Conversation:
    """Requests on one connection."""

    requests: tuple[bytes, ...]
    cuts: tuple[tuple[int, ...], ...]
    """Where each request is cut into pieces that arrive separately."""
    pipelined: bool


def make_conversation(seed: int, number: int) -> Conversation:
    """Make a conversation of up to seven requests, most of which repeat the head of another one."""
    random = Random(f"paths/{seed}/{number}")
    head = random.choice(_HEADS)
    requests = []
    for _ in range(random.randrange(1, 8)):
        if random.random() < 0.2:
            head = random.choice(_HEADS)
        requests.append(_request(head, random))
    cuts = tuple(tuple(_cuts(len(data), random)) for data in requests)
    return Conversation(tuple(requests), cuts, pipelined=random.random() < 0.2)


def _cuts(size: int, random: Random) -> list[int]:
    dice = random.random()
    if dice < 0.75 or size > 4000:
        return []
    if dice < 0.78:
        return list(range(1, size))
    return sorted(random.sample(range(1, size), k=min(size - 1, random.choice((1, 1, 2, 5)))))


def _call(name: str, arguments: Any, **more: Any) -> tuple[str, str | None, Any]:
    return "tools/call", name, {"name": name, "arguments": arguments, "_meta": META, **more}


_HEADS: Final = (
    _call("echo", {"text": "hello"}),
    _call("ECHO", {"text": "hello"}),
    _call("add", {"a": 1, "b": 2}),
    _call("failing", {}),
    _call("refusing", {}),
    _call("reporting", {}),
    _call("unknown", {}),
    ("tools/list", None, {"_meta": META}),
    ("server/discover", None, {"_meta": META}),
    ("resources/read", "config://app", {"uri": "config://app", "_meta": META}),
    ("notifications/cancelled", None, {"requestId": 99, "_meta": META}),
)


def _request(head: tuple[str, str | None, Any], random: Random) -> bytes:
    method, name, params = head
    body = {"jsonrpc": "2.0", "id": random.choice((1, 22, "three")), "method": method, "params": params}
    if method.startswith("notifications/"):
        del body["id"]
    if name == "echo" and random.random() < 0.6:
        size = random.choice((0, 1, 10, 1000, _LARGE))
        body["params"] = {**params, "arguments": {"text": "x" * size, "times": 1}}
    data = json.dumps(body).encode()
    if random.random() < 0.1:
        data = random.choice((b"", b"{", data[:-1], data + b" ", b"[%b]" % data, b"null"))
    headers = [
        (b"Host", b"127.0.0.1"),
        (b"Content-Type", b"application/json"),
        (b"Accept", b"application/json, text/event-stream"),
        (b"MCP-Protocol-Version", STATELESS.encode()),
        (b"Mcp-Method", method.encode()),
    ]
    if name is not None:
        headers.append((b"Mcp-Name", name.encode()))
    token = random.choice(_TOKENS)
    if token:
        headers.insert(random.randrange(len(headers) + 1), (b"Authorization", b"Bearer " + token.encode()))
    if random.random() < 0.1:
        headers.append(random.choice(((b"Connection", b"close"), (b"Expect", b"100-continue"), (b"X-Other", b"\t y "))))
    request = Request(headers, data)
    return mutate_request(request, random) if random.random() < 0.25 else request.encode()


@dataclass(frozen=True)
class Outcome:
    """Everything that a client and an operator can see of a conversation."""

    received: bytes
    closed: bool
    """Whether the server closed the connection before the client did."""
    records: tuple[tuple[Any, ...], ...]
    refused: int
    """How many requests were refused before a method saw them."""


class BothPaths:
    """A server that may answer directly, and one that does not."""

    def __init__(self, servers: Sequence[HttpServer], sinks: Sequence[MemorySink]) -> None:
        self._servers = servers
        self._sinks = sinks
        servers[1].server.state.answers_directly = False

    async def differences(self, seed: int, numbers: range) -> list[str]:
        """Hold conversations with both servers; describe each whose outcomes differ."""
        found = []
        for number in numbers:
            conversation = make_conversation(seed, number)
            direct, asgi = await asyncio.gather(*(self._outcome(which, conversation) for which in (0, 1)))
            if direct != asgi:
                found.append(
                    f"conversation {number} of seed {seed}: {conversation}\n  direct: {direct}\n  ASGI: {asgi}"
                )
        return found

    async def _outcome(self, which: int, conversation: Conversation) -> Outcome:
        server, sink = self._servers[which], self._sinks[which]
        sink.records.clear()
        server.app.refused.clear()
        received, closed = await _converse(server.port, conversation)
        await until(lambda: not server.server.connections and not server.server.state.tasks)
        records = tuple((one.event, one.name, one.outcome, one.reason, one.subject) for one in sink.records)
        return Outcome(_VARYING.sub(b"", received), closed, records, sum(server.app.refused.values()))


async def _converse(port: int, conversation: Conversation) -> tuple[bytes, bool]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    responses, received = Responses(), bytearray()
    with suppress(ConnectionError, httptools.HttpParserError):
        if conversation.pipelined:
            writer.write(b"".join(conversation.requests))
            await _read(reader, responses, received, len(conversation.requests))
        else:
            for count, (data, cuts) in enumerate(zip(conversation.requests, conversation.cuts, strict=True), 1):
                for begin, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
                    if not writer.is_closing():  # uvloop does not accept data for a closed connection
                        writer.write(data[begin:end])
                    for _ in range(4 if cuts else 0):
                        await asyncio.sleep(0)  # the server reads this piece alone
                await _read(reader, responses, received, count)
    closed = reader.at_eof() or reader.exception() is not None
    writer.transport.abort()
    return bytes(received), closed


async def _read(reader: asyncio.StreamReader, responses: Responses, received: bytearray, count: int) -> None:
    """Read until there are enough responses, the connection ends, or nothing arrives."""
    while not reader.at_eof() and not responses.has(count):
        data = await _arriving(reader, _QUIET_TURNS)
        if data is None:
            return
        received += data
        responses.parser.feed_data(data)
    received += await _arriving(reader, _END_TURNS) or b""


async def _arriving(reader: asyncio.StreamReader, turns: int) -> bytes | None:
    """Read what arrives within some turns of the loop; None if nothing does."""
    reading = asyncio.ensure_future(reader.read(1 << 20))
    for _ in range(turns):
        if reading.done():
            break
        await asyncio.sleep(0)
    if not reading.done():
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        return None
    return await reading


@asynccontextmanager
async def both_paths(*, protected: bool = True) -> AsyncIterator[BothPaths]:
    """Start both servers in this process; those that are not protected accept requests without a token."""
    settings = {name: section for name, section in SETTINGS.items() if protected or name != "auth"}
    async with AsyncExitStack() as stack:
        sinks, servers = [MemorySink(), MemorySink()], []
        for sink in sinks:
            container = Container()
            container.settings = providers.Object(settings)
            servers.append(await stack.enter_async_context(serving(container, audit_sinks=[sink])))
        yield BothPaths(servers, sinks)
