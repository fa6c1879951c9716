"""The HTTP protocol of a connection: what a client may send, and in which form."""

import asyncio
import re
import tracemalloc
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.peers.wire import call, connection, mirrored, raw_exchange, raw_request, read_reply
from tests.support.servers.serving import HttpServer, serving, until
from tests.support.tools import Echo, Probe, container_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

BODY = call("echo", {"text": "hello"})
HEADERS = list(mirrored(name="echo").items())
REQUEST = raw_request(BODY, HEADERS)
HEAD, _, _ = REQUEST.partition(b"\r\n\r\n")
MAX_HEAD_BYTES = 16 * 1024


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[HttpServer]:
    """A server with default settings."""
    async with serving(container_of(Echo())) as running:
        yield running


def with_head(line: bytes, *, instead_of: bytes = b"Content-Length: %d" % len(BODY)) -> bytes:
    """Return the request with one line of its head replaced."""
    assert instead_of in HEAD
    return REQUEST.replace(instead_of, line, 1)


def padded(size: int) -> bytes:
    """Return the request with a head of about this size."""
    return with_head(b"X-Padding: %b\r\nContent-Length: %d" % (b"x" * size, len(BODY)))


def chunked(*, trailers: bytes = b"", drop: bytes = b"") -> bytes:
    """Return the request with a chunked body that ends with trailers, and without one of its headers."""
    head = with_head(b"Transfer-Encoding: chunked").partition(b"\r\n\r\n")[0]
    if drop:
        head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(drop))
    return b"%b\r\n\r\n%x\r\n%b\r\n0\r\n%b\r\n" % (head, len(BODY), BODY, trailers)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Whether nothing follows."""
    return await reader.read() == b""


@pytest.mark.parametrize("request_size", [15_000, 16_000])
async def test_a_head_up_to_the_limit_is_served(server: HttpServer, request_size: int) -> None:
    """A head of up to 16 KiB is accepted."""
    assert (await raw_exchange(server.port, padded(request_size))).status == 200


@pytest.mark.parametrize("size", [MAX_HEAD_BYTES, 100_000, 1_000_000])
async def test_a_large_head_is_refused(server: HttpServer, size: int) -> None:
    """A larger head gets 431, and the connection is closed."""
    async with connection(server.port) as (reader, writer):
        writer.write(padded(size))
        reply = await read_reply(reader)
        assert (reply.status, reply.headers["connection"]) == (431, "close")
        assert "at most 100 headers and 16384 bytes" in reply.error["message"]
        assert await is_closed(reader)


async def test_an_endless_head_is_refused_as_it_arrives(server: HttpServer) -> None:
    """A head that arrives in small pieces is refused as soon as it is too large, long before it ends."""
    async with connection(server.port) as (reader, writer):
        writer.write(b"POST /mcp HTTP/1.1\r\nX-Endless: ")
        sent = 0
        while not reader._buffer and sent < 10 * MAX_HEAD_BYTES:  # type: ignore[attr-defined]
            writer.write(b"x" * 1024)
            sent += 1024
            await asyncio.sleep(0)
            await writer.drain()
        assert (await read_reply(reader)).status == 431


async def test_the_head_of_a_later_request_is_limited_too(server: HttpServer) -> None:
    """A second request in the same packet has the same limit."""
    async with connection(server.port) as (reader, writer):
        writer.write(REQUEST + padded(MAX_HEAD_BYTES))
        assert (await read_reply(reader)).status == 200
        assert (await read_reply(reader)).status == 431


@pytest.mark.parametrize(("count", "status"), [(100, 200), (101, 431), (20_000, 431)])
async def test_headers_are_counted(server: HttpServer, count: int, status: int) -> None:
    """A request may have a hundred headers."""
    more = b"".join(b"X-%d: y\r\n" % number for number in range(count - len(HEADERS) - 2))
    reply = await raw_exchange(server.port, with_head(b"%bContent-Length: %d" % (more, len(BODY))))
    assert reply.status == status


@pytest.mark.parametrize("line", [b"", b"Upgrade: x\r\nConnection: upgrade\r\n"])
async def test_requests_that_wait_for_a_reply_are_limited(line: bytes) -> None:
    """Only a hundred requests wait for the reply to another one, even if thousands arrive at once."""
    probe, small = Probe(), b"GET / HTTP/1.1\r\n%b\r\n" % line
    async with serving(container_of(probe)) as server, connection(server.port) as (reader, writer):
        writer.write(raw_request(call("probe"), mirrored(name="probe").items()))
        await probe.started.wait()
        tracemalloc.start()
        try:
            writer.write(small * (200_000 // len(small)))
            await until(lambda: server.app.refused.get(429) == 1)
            assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
        finally:
            tracemalloc.stop()
        probe.release.set()
        statuses = [(await read_reply(reader)).status for _ in range(102)]
        assert statuses == [200, *[421] * 100, 429]
        assert await is_closed(reader)


@pytest.mark.parametrize("in_pieces", [False, True])
async def test_a_request_to_upgrade_keeps_its_body(server: HttpServer, in_pieces: bool) -> None:
    """The wish to upgrade is ignored, as from Java's client, and the body is never taken for another request."""
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\nContent-Length: "
    wishing, hidden = with_head(b"%b%d" % (wish, len(BODY))), b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
    smuggling = with_head(b"%b%d" % (wish, len(hidden))).removesuffix(BODY) + hidden
    async with connection(server.port) as (reader, writer):
        for request, status in ((wishing, 200), (smuggling, 400), (wishing, 200)):
            for piece in [request[i : i + 50] for i in range(0, len(request), 50)] if in_pieces else [request]:
                writer.write(piece)
                await writer.drain()
            assert (await read_reply(reader)).status == status
        writer.write(REQUEST)
        assert (await read_reply(reader)).status == 200


@pytest.mark.parametrize("target", [b"/mcp", b"localhost:80"])
@pytest.mark.parametrize("upgrade", [b"", b"Connection: upgrade\r\nUpgrade: x\r\n"])
@pytest.mark.parametrize("in_pieces", [False, True])
async def test_connect_is_refused_with_its_body(
    server: HttpServer, target: bytes, upgrade: bytes, in_pieces: bool
) -> None:
    """The body of a CONNECT is never taken for another request: the connection is closed after one reply."""
    head = b"CONNECT %b HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: %d\r\n\r\n" % (target, upgrade, len(REQUEST))
    async with connection(server.port) as (reader, writer):
        for piece in (head, REQUEST) if in_pieces else (head + REQUEST,):
            writer.write(piece)
            await writer.drain()
        reply = await read_reply(reader)
        assert (reply.status, reply.headers["allow"]) == (405, "POST, GET, DELETE")
        assert await is_closed(reader)


async def test_heads_are_limited_in_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes and headers of a head are limited independently."""
    monkeypatch.setattr("axolotl_server.http.server.http_protocol.MAX_HEAD_BYTES", 1024)
    monkeypatch.setattr("axolotl_server.http.server.http_protocol.MAX_HEADERS", 9)
    async with serving(container_of(Echo())) as server:
        assert (await raw_exchange(server.port, REQUEST)).status == 200
        assert (await raw_exchange(server.port, padded(1024))).status == 431
        one_more = with_head(b"A: 1\r\nB: 2\r\nC: 3\r\nContent-Length: %d" % len(BODY))
        assert (await raw_exchange(server.port, one_more)).status == 431


async def test_trailers_are_not_headers(server: HttpServer) -> None:
    """A header that is required in the head is missing if it only comes after the body."""
    assert (await raw_exchange(server.port, chunked(trailers=b"X-Sum: 1\r\n"))).status == 200
    trailer = b"Mcp-Name: echo\r\n"
    assert (await raw_exchange(server.port, chunked(trailers=trailer, drop=b"mcp-name"))).status == 400
    trailer = b"Host: localhost\r\n"
    assert (await raw_exchange(server.port, chunked(trailers=trailer, drop=b"host"))).status == 421


async def test_endless_trailers_are_refused(server: HttpServer) -> None:
    """Trailers of more than 16 KiB close the connection."""
    async with connection(server.port) as (reader, writer):
        writer.write(chunked()[:-2] + b"X-Endless: ")
        for _ in range(64):
            writer.write(b"x" * 1024)
            await asyncio.sleep(0)
        assert (await read_reply(reader)).status == 431


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"Transfer-Encoding: gzip, chunked", 501),
        (b"Transfer-Encoding: gzip", 501),
        (b"Transfer-Encoding: chunked, chunked", 400),
        (b"Transfer-Encoding: identity", 501),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5", 400),
        (b"Content-Length: 5\r\nContent-Length: 6", 400),
        (b"Content-Length: +5", 400),
        (b"Content-Length: 5, 5", 400),
        (b"Content-Length: 0x5", 400),
        (b"X Space: 1", 400),
        (b"No-Colon", 400),
    ],
)
async def test_framing_is_strict(server: HttpServer, line: bytes, status: int) -> None:
    """Bodies whose end is ambiguous, and codings that are not supported, are refused; the connection is closed."""
    async with connection(server.port) as (reader, writer):
        writer.write(with_head(line) + b"\r\n\r\n")
        reply = await read_reply(reader)
        assert (reply.status, reply.headers["connection"]) == (status, "close")
        assert await is_closed(reader)


@pytest.mark.parametrize(
    ("version", "status"), [(b"HTTP/2.0", 505), (b"HTTP/0.9", 505), (b"HTTP/1.2", 400), (b"HTTP/3", 400)]
)
async def test_other_versions_are_refused(server: HttpServer, version: bytes, status: int) -> None:
    """Only HTTP/1.1 and HTTP/1.0 are served."""
    reply = await raw_exchange(server.port, with_head(version, instead_of=b"HTTP/1.1"))
    assert reply.status == status


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"http://127.0.0.1/mcp", 200),
        (b"http://127.0.0.1/mcp?a=http://evil.example/", 200),
        (b"http://evil.example/mcp", 400),
        (b"http://evil.example?/mcp", 400),
        (b"http://127.0.0.1@evil.example/mcp", 400),
        (b"/mcp?a=http://evil.example/", 200),
    ],
)
async def test_a_target_names_the_host_of_its_header(server: HttpServer, target: bytes, status: int) -> None:
    """A target in absolute form has the host that the header has, which is the one that is checked."""
    request = with_head(b"Content-Length: %d" % len(BODY)).replace(b"POST /mcp ", b"POST %b " % target, 1)
    request = re.sub(rb"Host: [^\r]*", b"Host: 127.0.0.1", request)
    assert (await raw_exchange(server.port, request)).status == status


async def test_the_first_version_has_no_chunks(server: HttpServer) -> None:
    """HTTP/1.0 is served, but not with a Transfer-Encoding."""
    assert (await raw_exchange(server.port, with_head(b"HTTP/1.0", instead_of=b"HTTP/1.1"))).status == 200
    assert (await raw_exchange(server.port, chunked().replace(b"HTTP/1.1", b"HTTP/1.0"))).status == 400


@pytest.mark.parametrize("name", ["Authorization", "Content-Type", "Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"])
async def test_headers_that_matter_are_sent_once(server: HttpServer, name: str) -> None:
    """Two values for a header on which security depends are refused, even if they are equal."""
    value = dict(HEADERS).get(name, "Bearer x")
    twice = [*HEADERS, (name, value)] if name in dict(HEADERS) else [*HEADERS, (name, value), (name, value)]
    reply = await raw_exchange(server.port, raw_request(BODY, twice))
    assert reply.status == 400
    assert reply.error["message"] == f"Bad request: send the header {name.title()} only once"


async def test_accept_may_have_several_lines(server: HttpServer) -> None:
    """Accept is a list, which clients may send in several lines."""
    others = [pair for pair in HEADERS if pair[0] != "Accept"]
    lines = [("Accept", "application/json"), ("Accept", "text/event-stream")]
    assert (await raw_exchange(server.port, raw_request(BODY, [*others, *lines]))).status == 200


async def test_refusals_are_counted(server: HttpServer) -> None:
    """Requests that are refused by the protocol count as those that are refused later."""
    before = server.app.refused.get(431, 0)
    await raw_exchange(server.port, padded(MAX_HEAD_BYTES))
    assert server.app.refused[431] == before + 1
