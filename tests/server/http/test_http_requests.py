"""Validation of HTTP requests."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from axolotl_core.tools.schema_tool import SchemaTool
from tests.support.peers.wire import (
    RawReply,
    call,
    connection,
    mirrored,
    raw_exchange,
    raw_request,
    read_reply,
)
from tests.support.servers.server_process import over_http
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving
from tests.support.tools import Echo, container_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 10_000
TARGET = "tests/transcripts/tools.py:Container"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[HttpServer]:
    """A server with a small size limit."""
    tools = (Echo(), SchemaTool("raw", {}, lambda arguments: "fine", description="Take anything"))
    async with serving(container_of(*tools), {"limits": {"max_message_bytes": LIMIT}}) as running:
        yield running


async def post(server: HttpServer, body: bytes, headers: dict[str, str]) -> RawReply:
    return await raw_exchange(server.port, raw_request(body, headers.items()))


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/json;charset=UTF-8", 200),
        ("APPLICATION/JSON", 200),
        (" application/json ", 200),
        ("application/json; charset=latin-1", 415),
        ("application/json-seq", 415),
        ("application/jsonp", 415),
        ("text/json", 415),
        ("text/plain", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
        (None, 415),
    ],
)
async def test_content_type(server: HttpServer, content_type: str | None, status: int) -> None:
    """The content type must be JSON, which forms of other sites cannot send."""
    headers = mirrored(name="echo")
    del headers["Content-Type"]
    if content_type is not None:
        headers["Content-Type"] = content_type
    assert (await post(server, call("echo"), headers)).status == status


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json, text/event-stream", 200),
        ("text/event-stream, application/json", 200),
        ("application/json", 200),
        ("application/*", 200),
        ("*/*", 200),
        ("Application/JSON;q=0.9, text/event-stream;q=0.1", 200),
        (None, 200),
        ("text/event-stream", 406),
        ("text/html", 406),
        ("application/xml, text/*", 406),
        ("", 406),
    ],
)
async def test_accept(server: HttpServer, accept: str | None, status: int) -> None:
    """A client must accept JSON."""
    headers = mirrored(name="echo")
    del headers["Accept"]
    if accept is not None:
        headers["Accept"] = accept
    assert (await post(server, call("echo"), headers)).status == status


@pytest.mark.parametrize("path", ["/", "/mcp2", "/mcp/more", "/MCP", "/mcp/../secret", "/sse"])
async def test_other_paths_are_not_there(server: HttpServer, path: str) -> None:
    """Any other path is not found, and the error names the endpoint."""
    reply = await raw_exchange(server.port, raw_request(call("echo"), mirrored(name="echo").items(), path=path))
    assert reply.status == 404
    assert reply.error["message"] == "Not found: the MCP endpoint is /mcp"


async def test_a_query_does_not_matter(server: HttpServer) -> None:
    """The query string is ignored."""
    request = raw_request(call("echo"), mirrored(name="echo").items(), path="/mcp?key=1")
    assert (await raw_exchange(server.port, request)).status == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "HEAD"])
async def test_other_methods_are_not_allowed(server: HttpServer, method: str) -> None:
    """Other methods are rejected with a list of the allowed ones."""
    async with connection(server.port) as (reader, writer):
        writer.write(raw_request(b"", [], method=method))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 405 ")
        assert b"\r\nallow: POST, GET, DELETE\r\n" in head.lower().replace(b"post, get, delete", b"POST, GET, DELETE")


async def test_an_announced_body_that_is_too_large_is_not_read(server: HttpServer) -> None:
    """A Content-Length above the limit is rejected before the body arrives."""
    head = raw_request(b"", mirrored(name="echo").items()).replace(b"Content-Length: 0", b"Content-Length: 10001")
    async with connection(server.port) as (reader, writer):
        writer.write(head + b"{")
        reply = await read_reply(reader)
        assert reply.status == 413
        assert reply.error["message"] == "Content too large: a message may have at most 10000 bytes"
        assert reply.headers["connection"] == "close"


async def test_an_absurd_length_is_rejected(server: HttpServer) -> None:
    """An absurd Content-Length is rejected."""
    request = raw_request(b"", mirrored(name="echo").items()).replace(b"Length: 0", b"Length: " + b"9" * 18)
    async with connection(server.port) as (reader, writer):
        writer.write(request + b"{")
        assert (await read_reply(reader)).status == 413


@pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413)])
async def test_the_limit_of_a_body(server: HttpServer, size: int, status: int) -> None:
    """A body may have exactly the maximum size."""
    body = call("echo").ljust(size)
    assert (await post(server, body, mirrored(name="echo"))).status == status


def chunked(body: bytes, size: int) -> bytes:
    head = raw_request(b"", mirrored(name="echo").items()).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    chunks = (body[start : start + size] for start in range(0, len(body), size))
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


async def test_a_body_in_chunks_is_read(server: HttpServer) -> None:
    """A chunked body is accepted."""
    request = chunked(call("echo", {"text": "x" * 3000}), 7) + b"0\r\n\r\n"
    reply = await raw_exchange(server.port, request)
    assert json.loads(reply.body)["result"]["content"][0]["text"] == "x" * 3000


async def test_a_chunked_body_that_is_too_large_is_rejected(server: HttpServer) -> None:
    """A chunked body is rejected when it exceeds the limit."""
    async with connection(server.port) as (reader, writer):
        writer.write(chunked(b" " * (LIMIT + 1), 1000))
        assert (await read_reply(reader)).status == 413


async def test_a_client_that_disconnects_during_its_body(server: HttpServer) -> None:
    """A client that disconnects during its body does not affect others."""
    async with connection(server.port) as (_, writer):
        writer.write(raw_request(b"", mirrored(name="echo").items()).replace(b"Length: 0", b"Length: 100") + b"{")
        await writer.drain()
    assert (await post(server, call("echo"), mirrored(name="echo"))).status == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"", -32700, id="nothing"),
        pytest.param(b"   ", -32700, id="blanks"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, id="no UTF-8"),
        pytest.param(call("echo").decode().encode("utf-16"), -32700, id="UTF-16"),
        pytest.param(b"[" * 5000, -32700, id="brackets without end"),
        pytest.param(b"[" * 4000 + b"]" * 4000, -32700, id="nested arrays"),
        pytest.param(b'{"a":' * 1500 + b"1" + b"}" * 1500, -32700, id="nested objects"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":' + b"[" * 600 + b"]" * 600 + b"}}",
            -32700,
            id="nested arguments",
        ),
        pytest.param(b'["' + b'\\"' * 4500, -32700, id="escaped quotes without end"),
        pytest.param(b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', -32700, id="id of 5000 digits"),
        pytest.param(b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', -32700, id="id beyond all floats"),
        pytest.param(b'{"jsonrpc":"2.0","id":1e9,"method":"ping"}', -32600, id="id with an exponent"),
        pytest.param(b'{"jsonrpc":"2.0","id":"' + b"x" * 200 + b'","method":"ping"}', -32600, id="id too long"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 200 + b'"}', -32600, id="method too long"),
    ],
)
async def test_invalid_bodies(server: HttpServer, body: bytes, code: int) -> None:
    """Any invalid body gets an error with status 400, quickly."""
    async with asyncio.timeout(1):
        reply = await post(server, body, mirrored("x"))
    assert (reply.status, reply.error["code"]) == (400, code)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000, "0." + "9" * 5000, "1e-999"])
async def test_numbers_in_arguments_may_be_odd(server: HttpServer, number: str) -> None:
    """An unusual number is an invalid argument, not a server error."""
    body = call("echo", {"text": "@"}).replace(b'"@"', number.encode())
    reply = json.loads((await post(server, body, mirrored(name="echo"))).body)
    assert reply["result"]["isError"] is True
    assert reply["result"]["content"][0]["text"].startswith("Invalid arguments: ")


@pytest.mark.parametrize("tool", ["echo", "raw"])
@pytest.mark.parametrize("depth", [60, 150, 250, 400])
async def test_arguments_may_be_nested(server: HttpServer, tool: str, depth: int) -> None:
    """Deeply nested arguments are invalid arguments, not a server error."""
    body = call(tool, {"text": "@"}).replace(b'"@"', b"[" * depth + b"]" * depth)
    reply = json.loads((await post(server, body, mirrored(name=tool))).body)
    assert "result" in reply or reply["error"]["code"] in (-32700, -32602)
    if "result" in reply:
        assert "Reference" not in reply["result"]["content"][0]["text"]


async def test_requests_share_a_connection(server: HttpServer) -> None:
    """A connection is kept open for the next request, even after an error."""
    async with connection(server.port) as (reader, writer):
        for body, status in ((call("echo"), 200), (b"nonsense", 400), (call("echo"), 200)):
            writer.write(raw_request(body, mirrored(name="echo").items()))
            assert (await read_reply(reader)).status == status


async def test_pipelined_requests_are_answered_in_order(server: HttpServer) -> None:
    """Pipelined requests are answered in order."""
    async with connection(server.port) as (reader, writer):
        for number in range(20):
            writer.write(raw_request(call("echo", id=number), mirrored(name="echo").items()))
        ids = [json.loads((await read_reply(reader)).body)["id"] for _ in range(20)]
        assert ids == list(range(20))


async def test_a_stalled_request_times_out() -> None:
    """A body or headers that do not arrive in time get 408."""
    async with over_http(TARGET, AXOLOTL_HTTP__REQUEST_TIMEOUT_SECONDS="0.2") as server:
        port = server.port
        body = raw_request(b"", mirrored(name="echo").items()).replace(b"Length: 0", b"Length: 100") + b"{"
        for begun in (body, b"POST /mcp HT"):
            async with connection(port) as (reader, writer):
                writer.write(begun)
                async with asyncio.timeout(PATIENCE_SECONDS):
                    assert (await read_reply(reader)).status == 408
                    assert await reader.read() == b""
        reply = await raw_exchange(port, raw_request(call("echo", {"text": "x"}), mirrored(name="echo").items()))
        assert reply.status == 200


async def test_shutdown_answers_running_calls() -> None:
    """On shutdown, a call that exceeds the grace period is answered, its stream ends, and the process exits cleanly."""
    draining = over_http(TARGET, AXOLOTL_HTTP__DRAIN_SECONDS="0.1")
    async with draining as server, connection(server.port) as (reader, writer):
        writer.write(raw_request(call("hold", token=1), mirrored(name="hold").items()))
        await reader.readuntil(b"notifications/progress")
        server.tell(signal.SIGTERM)
        assert b"the server is shutting down" in await reader.read()
        assert await server.ended() == 0
