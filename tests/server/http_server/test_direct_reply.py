"""Plain replies under uvicorn that bypass ASGI: identical to other replies."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.peers.wire import call, mirrored, raw_request
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import Echo, Probe, container_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

REQUEST = raw_request(call("echo", {"text": "hällo"}), mirrored(name="echo").items())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[HttpServer]:
    """A server with default settings."""
    async with serving(container_of(Echo())) as running:
        yield running


async def conversation(server: HttpServer, *requests: bytes, replies: int) -> list[tuple[str, dict[str, str], bytes]]:
    """Send requests at once on one connection, and parse the replies."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"".join(requests))
    heard = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(replies):
            status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
            headers = dict(line.split(": ", 1) for line in lines)
            heard.append((status, headers, await reader.readexactly(int(headers["content-length"]))))
    writer.close()
    return heard


async def test_a_reply_has_its_headers(server: HttpServer) -> None:
    """The reply has a status, a media type, an exact length and a date."""
    ((status, headers, body),) = await conversation(server, REQUEST, replies=1)
    assert status == "HTTP/1.1 200 OK"
    assert headers.keys() >= {"content-type", "content-length", "date"}
    assert headers["content-type"] == "application/json"
    assert "hällo".encode() in body


async def test_requests_on_one_connection_are_answered_in_order(server: HttpServer) -> None:
    """Pipelined requests on one connection are answered in order."""
    requests = [raw_request(call("echo", {"text": f"<{n}>"}), mirrored(name="echo").items()) for n in range(20)]
    heard = await conversation(server, *requests, replies=20)
    assert [f"<{number}>".encode() in body for number, (_, _, body) in enumerate(heard)] == [True] * 20


async def test_a_connection_is_closed_where_the_client_wants_it(server: HttpServer) -> None:
    """If the client wants the connection closed, the reply goes through ASGI."""
    closing = REQUEST.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
    ((_, headers, _),) = await conversation(server, closing, replies=1)
    assert headers["connection"] == "close"


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
async def test_a_client_that_leaves_a_pipeline_is_noticed(connection: str) -> None:
    """A call is stopped when its client leaves, even if the client has sent another request behind it."""
    probe, settings = Probe(), {"http": {"keep_alive_seconds": 60}}
    async with serving(container_of(probe), settings) as server, asyncio.timeout(PATIENCE_SECONDS):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        headers = mirrored(name="probe") | {"Connection": connection}
        writer.write(raw_request(call("probe"), headers.items()) + REQUEST)
        await probe.started.wait()
        writer.transport.abort()
        await probe.cancelled.wait()


async def test_a_client_that_leaves_after_a_wrong_request_is_noticed() -> None:
    """A call is stopped when its client leaves, even if the client has sent something that is no request behind it."""
    probe, settings = Probe(), {"http": {"keep_alive_seconds": 60}}
    async with serving(container_of(probe), settings) as server, asyncio.timeout(PATIENCE_SECONDS):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(raw_request(call("probe"), mirrored(name="probe").items()) + b"no request\r\n\r\n")
        await probe.started.wait()
        writer.transport.abort()
        await probe.cancelled.wait()


@pytest.mark.parametrize("pieces", [1, 2])
async def test_an_idle_connection_keeps_no_body(server: HttpServer, pieces: int) -> None:
    """The latest request of a connection does not hold its message when it is answered."""
    data = raw_request(call("echo", {"text": "x" * 50_000}), mirrored(name="echo").items())
    size = len(data) // pieces + 1
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for begin in range(0, len(data), size):
            writer.write(data[begin : begin + size])
            await until(lambda: not writer.transport.get_write_buffer_size())
        await reader.readuntil(b"}")
        ours = writer.get_extra_info("sockname")
        (connection,) = [one for one in server.server.connections if one.client == ours]
        await until(lambda: connection.is_idle)
        assert not connection.cycle.body
        writer.close()
