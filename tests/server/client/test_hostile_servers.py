"""The client against servers that send too much, nothing, or something else than the protocol."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from axolotl_server import RemoteError, connect_url
from axolotl_server.client.channel import InvalidReply
from axolotl_server.client.event_reading import ClientLimits, EventParser
from axolotl_server.client.http_channel import HttpStatusError
from tests.support.servers.serving import PATIENCE_SECONDS

LIMITS = ClientLimits(
    connect_seconds=2, silence_seconds=2, max_message_bytes=2000, max_response_bytes=10_000, max_reconnects=2
)
TOKEN = "t0ken-of-ada"
EVENTS = "text/event-stream"
JSON = "application/json"


class Hostile:
    """A server that sends prepared bytes, and counts requests."""

    def __init__(self, reply: Callable[[Any], bytes], *, repeated: bytes = b"", ends: bool = True) -> None:
        self.reply = reply
        self.repeated = repeated
        self.ends = ends
        self.requests: list[bytes] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            body = await reader.readexactly(int(length[1])) if length else b"{}"
            self.requests.append(head)
            reply = self.reply(json.loads(body))
            writer.write(reply)
            while self.repeated and b"Content-Length" not in reply:
                writer.write(self.repeated)
                await writer.drain()
                await asyncio.sleep(0)  # the client runs on the same loop
            if not self.ends:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def hostile(reply: Callable[[Any], bytes], *, repeated: bytes = b"", ends: bool = True) -> AsyncIterator[Hostile]:
    served = Hostile(reply, repeated=repeated, ends=ends)
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    served.port = server.sockets[0].getsockname()[1]
    async with asyncio.timeout(PATIENCE_SECONDS):
        try:
            yield served
        finally:
            server.close()


def http(status: int, media: str = JSON, body: bytes | None = None, *headers: str) -> bytes:
    """Encode a response; without a body, it does not end."""
    lines = [f"HTTP/1.1 {status} Some", f"Content-Type: {media}", *headers, "Connection: close"]
    lines += [] if body is None else [f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def result(request: Any, content: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request.get("id"), "result": content}).encode()


def discovered(request: Any) -> bytes | None:
    """Answer the first request of a client as a stateless server does."""
    if request["method"] != "server/discover":
        return None
    content = {"resultType": "complete", "supportedVersions": [], "capabilities": {"tools": {}}}
    return http(200, JSON, result(request, content))


async def call(served: Hostile, *, token: str | None = None, limits: ClientLimits = LIMITS) -> Any:
    async with connect_url(served.url, token=token, limits=limits) as client:
        return await client.call("add", {"a": 1})


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (http(200, JSON, b"<html>"), "sent no JSON"),
        (http(200, JSON, b"\xff\xfe{}"), "sent no JSON"),
        (http(200, JSON, b"[" * 1500), "sent no JSON"),
        (http(200, JSON, b'{"jsonrpc": "2.0", "id": 9, "result": 7}'), "does not follow the protocol"),
        (http(200, JSON, b'{"jsonrpc": "1.0", "id": 9, "result": {}}'), "is not a JSON-RPC message"),
        (http(200, JSON, b'{"jsonrpc": "2.0", "id": 999, "result": {}}'), "without a response to the request"),
        (http(200, JSON, b'{"jsonrpc": "2.0", "id": 9, "error": {"code": "x"}}'), "does not follow the protocol"),
        (http(200, JSON, b"x" * 2001), "more than 2000 bytes"),
        (http(200, JSON, gzip.compress(b"{}"), "Content-Encoding: gzip"), "encoding that was not requested"),
        (http(200, EVENTS, b"data: {\n\n"), "sent no JSON"),
        (http(200, EVENTS, b"data: " + b"x" * 3000), "larger than 2000 bytes"),
        (http(200, EVENTS, b": nothing\n\n"), "closed the connection before it answered"),
        (http(202, JSON, b""), "something else than a message"),
        (http(200, "text/html", b"<html>"), "something else than a message"),
        (b"HTTP/1.1 banana\r\n\r\n", "cannot be reached"),
        (b"", "cannot be reached"),
    ],
)
async def test_answers_that_are_no_messages(reply: bytes, problem: str) -> None:
    """What does not follow the protocol is an error that says so, for the first request and for later ones."""
    async with hostile(lambda request: reply) as served:
        with pytest.raises(ConnectionError, match=problem):
            await call(served)
    async with hostile(lambda request: discovered(request) or reply) as served:
        with pytest.raises(ConnectionError, match=problem):
            await call(served)


@pytest.mark.parametrize(
    "repeated", [b": keep-alive\n\n", b'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n']
)
async def test_an_endless_stream(repeated: bytes) -> None:
    """A stream that never ends is left when it exceeds the limit."""
    reply = http(200, EVENTS)
    async with hostile(lambda request: discovered(request) or reply, repeated=repeated) as served:
        with pytest.raises(InvalidReply, match="more than 10000 bytes"):
            await call(served)


@pytest.mark.parametrize("media", [JSON, EVENTS])
async def test_silence(media: str) -> None:
    """A server that accepts a request and says nothing is left after the time limit."""
    limits = ClientLimits(connect_seconds=0.3, silence_seconds=0.3)
    async with hostile(lambda request: http(200, media), ends=False) as served:
        with pytest.raises(ConnectionError, match=r"no answer within 0\.3 seconds|sent nothing for 0\.3 seconds"):
            await call(served, limits=limits)
    async with hostile(lambda request: discovered(request) or http(200, media), ends=False) as served:
        with pytest.raises(ConnectionError, match=r"sent nothing for 0\.3 seconds"):
            await call(served, limits=limits)


@pytest.mark.parametrize(
    ("status", "problem"),
    [(401, "requires a token"), (403, "does not allow this"), (404, "has no such path"), (503, "not available now")],
)
async def test_statuses(status: int, problem: str) -> None:
    """An HTTP error is reported with its status, and its meaning."""
    async with hostile(lambda request: http(status, "text/plain", b"no")) as served:
        with pytest.raises(HttpStatusError, match=problem) as caught:
            await call(served)
    assert caught.value.status == status


async def test_a_rejected_token_is_not_shown() -> None:
    """The message about a rejected token does not contain it, and the server is asked once."""
    async with hostile(lambda request: http(401, JSON, b'{"error": "invalid_token"}')) as served:
        with pytest.raises(HttpStatusError, match="rejects the token") as caught:
            await call(served, token=TOKEN)
    assert TOKEN not in str(caught.value)
    assert len(served.requests) == 1
    assert TOKEN.encode() in served.requests[0]


async def test_redirects_are_not_followed() -> None:
    """No other server gets the request or the token."""
    async with (
        hostile(lambda request: http(200, JSON, b"{}")) as other,
        hostile(lambda request: http(307, JSON, b"", f"Location: {other.url}?secret=1")) as served,
    ):
        with pytest.raises(HttpStatusError, match=rf"redirects to 'http://127.0.0.1:{other.port}/mcp'"):
            await call(served, token=TOKEN)
        assert other.requests == []


async def test_a_redirect_to_a_malformed_address() -> None:
    """A redirect is reported as one, wherever it leads."""
    async with hostile(lambda request: http(307, JSON, b"", "Location: http://[x")) as served:
        with pytest.raises(HttpStatusError, match="redirects to '', which is not followed"):
            await call(served)


async def test_ids_that_are_not_ascii() -> None:
    """The IDs of sessions and events are sent back as they are, and cannot make a request fail."""
    event = 'id: é\nretry: 1\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'.encode()

    def reply(request: Any) -> bytes:
        if not request:
            return http(404, JSON, b"")
        if request["method"] == "initialize":
            agreed = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            return http(200, JSON, result(request, agreed), "Mcp-Session-Id: ü")
        return http(200, EVENTS, event) if "id" in request else http(202, JSON, b"")

    async with hostile(reply) as served:
        with pytest.raises(HttpStatusError, match="has no such session any more"):
            async with connect_url(served.url, revision="2025-06-18", limits=LIMITS) as client:
                await client.call("add", {"a": 1})
    [resumed] = [head for head in served.requests if b"Last-Event-ID" in head]
    assert "Last-Event-ID: é\r\n".encode() in resumed
    assert "Mcp-Session-Id: ü\r\n".encode() in resumed


@pytest.mark.parametrize(
    ("url", "token", "problem"),
    [
        ("ftp://127.0.0.1/mcp", None, "is not the URL of a server"),
        ("127.0.0.1:8000", None, "is not the URL of a server"),
        ("http://ada:secret@127.0.0.1/mcp", None, "must not contain a user or a password"),
        ("http://127.0.0.1:99999/mcp", None, "Port out of range"),
        ("http://example.com/mcp", TOKEN, "would be sent unencrypted"),
        ("http://127.0.0.1/mcp", "two words", "is not a bearer token"),
        ("http://127.0.0.1/mcp", "line\nbreak", "is not a bearer token"),
    ],
)
async def test_addresses_and_tokens_that_are_refused(url: str, token: str | None, problem: str) -> None:
    """Nothing is sent to a wrong address, and no token in the clear."""
    with pytest.raises(ValueError, match=problem) as caught:
        async with connect_url(url, token=token):
            pass
    assert "secret" not in str(caught.value)


async def test_nobody_listens() -> None:
    """A refused connection is an error that names the address."""
    async with hostile(lambda request: b"") as served:
        pass
    with pytest.raises(ConnectionError, match=rf"http://127.0.0.1:{served.port}/mcp cannot be reached"):
        await call(served)


@pytest.mark.parametrize(
    "content",
    [
        {"resultType": "complete"},
        {"resultType": "complete", "content": [{"text": "no type"}]},
        {"resultType": "complete", "content": "text"},
        {"resultType": "complete", "content": [], "isError": "perhaps"},
    ],
)
async def test_results_of_another_shape(content: Any) -> None:
    """A result that lacks what the protocol prescribes is an error that names the member."""
    async with hostile(lambda request: discovered(request) or http(200, JSON, result(request, content))) as served:
        with pytest.raises(InvalidReply, match=r"The result of tools/call does not follow the protocol: .*`"):
            await call(served)


async def test_a_blob_that_is_not_base64() -> None:
    """A resource whose data cannot be decoded is an error of the request, not of the code that reads the data."""
    content = {"resultType": "complete", "contents": [{"uri": "logo://axolotl", "blob": "A"}]}
    async with (
        hostile(lambda request: discovered(request) or http(200, JSON, result(request, content))) as served,
        connect_url(served.url, limits=LIMITS) as client,
    ):
        with pytest.raises(InvalidReply, match="does not follow the protocol: a blob is not base64"):
            await client.read_resource("logo://axolotl")


async def test_endless_pages() -> None:
    """A list whose pages never end is left."""
    page = {"resultType": "complete", "tools": [], "nextCursor": "again"}
    async with (
        hostile(lambda request: discovered(request) or http(200, JSON, result(request, page))) as served,
        connect_url(served.url, limits=LIMITS) as client,
    ):
        with pytest.raises(InvalidReply, match="more than 1000 pages"):
            await client.list_tools()


async def test_a_server_of_other_revisions() -> None:
    """The revisions of a server that speaks none of ours are named."""

    def reply(request: Any) -> bytes:
        if request["method"] == "initialize":
            return http(200, JSON, result(request, {"protocolVersion": "2031-01-01", "capabilities": {}}))
        error = {"code": -32022, "message": "no", "data": {"supported": ["2031-01-01"]}}
        return http(400, JSON, json.dumps({"jsonrpc": "2.0", "error": error}).encode())

    async with hostile(reply) as served:
        with pytest.raises(ConnectionError, match="speaks other revisions \\(2031-01-01\\)"):
            await call(served)
        with pytest.raises(InvalidReply, match="speaks the revision '2031-01-01' instead of '2025-06-18'"):
            async with connect_url(served.url, revision="2025-06-18"):
                pass


async def test_an_error_without_an_id_answers_the_request() -> None:
    """A server that could not read the ID of a request sends an error without one."""
    error = b'{"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}}'
    async with hostile(lambda request: discovered(request) or http(400, JSON, error)) as served:
        with pytest.raises(RemoteError, match="no"):
            await call(served)


def events(*pieces: bytes, max_bytes: int = 100) -> list[Any]:
    parser = EventParser(max_bytes)
    return [(event.data, event.id, event.retry_milliseconds) for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([b"data: a\n\n"], [(b"a", None, None)]),
        ([b"data: a\r\n\r\ndata:b\r\r"], [(b"a", None, None), (b"b", None, None)]),
        ([b"data: a\r", b"\n\r", b"\ndata: b\n\n"], [(b"a", None, None), (b"b", None, None)]),
        ([bytes([byte]) for byte in b"id: 1\ndata: a\ndata: b\n\n"], [(b"a\nb", "1", None)]),
        ([b"\xef\xbb\xbfdata: a\n\n"], [(b"a", None, None)]),
        ([b": comment\n\nid: 7\nretry: 50\ndata:\n\n"], [(b"", "7", 50)]),
        ([b"event: other\ndata: a\n\nevent: message\ndata: b\n\n"], [(b"b", None, None)]),
        ([b"id: 1\ndata: a\n\ndata: b\n\n"], [(b"a", "1", None), (b"b", "1", None)]),
        ([b"id: \x00\nretry: soon\ndata: a\n\n"], [(b"a", None, None)]),
        ([b"data: cut off\n"], []),
    ],
)
def test_events(pieces: list[bytes], expected: list[Any]) -> None:
    """Events are parsed as the standard says, wherever the stream is cut into pieces."""
    assert events(*pieces) == expected


@pytest.mark.parametrize("pieces", [[b"data: " + b"x" * 100], [b"data: xx\n"] * 20, [b"x" * 30] * 4])
def test_large_events(pieces: list[bytes]) -> None:
    """An event that exceeds the limit is refused before it is complete."""
    with pytest.raises(InvalidReply, match="larger than 100 bytes"):
        events(*pieces)
