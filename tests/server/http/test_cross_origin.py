"""Cross-origin requests of web pages."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from axolotl_server.http.app import HttpApp
from axolotl_server.http.assembly import CrossOriginApp
from tests.support.authorization_server import authority
from tests.support.peers.wire import RawReply, raw_exchange, raw_request
from tests.support.servers.authenticated_server import bearer, discover, gated
from tests.support.servers.serving import HttpServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = "https://app.example.com"
HTTP = {"allowed_origins": [PAGE], "sse_path": "/sse"}
WANTED = "Authorization, content-type, MCP-Protocol-Version, mcp-param-tenant, Last-Event-ID"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[HttpServer]:
    """A server that allows one other origin."""
    async with gated({}, http=HTTP) as running:
        yield running


async def preflight(
    server: HttpServer, origin: str, path: str = "/mcp", host: str = "localhost", wanted: str = WANTED
) -> RawReply:
    headers = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", wanted),
    ]
    return await raw_exchange(server.port, raw_request(b"", headers, method="OPTIONS", path=path, host=host))


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/sse", "/sse/messages"])
async def test_preflight(server: HttpServer, path: str) -> None:
    """The preflight response lists what the page may send."""
    reply = await preflight(server, PAGE, path)
    assert reply.status == 204
    assert reply.headers["access-control-allow-origin"] == PAGE
    assert reply.headers["vary"] == "Origin"
    assert reply.headers["access-control-allow-methods"] == "GET, POST, DELETE"
    allowed = reply.headers["access-control-allow-headers"].split(", ")
    assert allowed == [name.strip().lower() for name in WANTED.split(",")]
    assert "access-control-allow-credentials" not in reply.headers


async def test_headers_of_others_are_not_allowed(server: HttpServer) -> None:
    """Only headers of the protocol are allowed."""
    reply = await preflight(server, PAGE, wanted="x-evil, mcp-, mcp-a b, cookie, accept, *")
    assert reply.headers["access-control-allow-headers"] == "accept"


@pytest.mark.parametrize(
    "origin", ["https://evil.example.com", "null", f"{PAGE}.evil.org", "*", "http://app.example.com"]
)
async def test_pages_that_may_not(server: HttpServer, origin: str) -> None:
    """A page of another origin is rejected without CORS headers."""
    for reply in (await preflight(server, origin), await discover(server, ("Origin", origin))):
        assert reply.status == 403
        assert not [name for name in reply.headers if name.startswith("access-control")]


async def test_pages_of_this_machine_may_send_but_not_read(server: HttpServer) -> None:
    """Loopback origins may send requests, but without CORS headers they cannot read the responses."""
    reply = await discover(server, ("Origin", "http://localhost:3000"))
    assert reply.status == 200
    assert "access-control-allow-origin" not in reply.headers
    assert "access-control-allow-origin" not in (await preflight(server, "http://localhost:3000")).headers


async def test_the_host_is_checked_first(server: HttpServer) -> None:
    """The Host is checked before a preflight is answered."""
    assert (await preflight(server, PAGE, host="evil.org")).status == 421


async def test_two_origins(server: HttpServer) -> None:
    """Two Origin headers are rejected."""
    reply = await discover(server, ("Origin", PAGE), ("Origin", PAGE))
    assert reply.status == 400
    assert "access-control-allow-origin" not in reply.headers


async def test_answers(server: HttpServer) -> None:
    """The page may read responses, including errors, and the headers that it needs."""
    for reply in (
        await discover(server, ("Origin", PAGE)),
        await discover(server, ("Origin", PAGE.upper())),
        await discover(server, ("Origin", PAGE), method="PUT"),
        await discover(server, ("Origin", PAGE), body=b"{"),
        await discover(server, ("Origin", PAGE), path="/elsewhere"),
    ):
        assert reply.headers["access-control-allow-origin"].lower() == PAGE
        assert reply.headers["vary"] == "Origin"
        exposed = reply.headers["access-control-expose-headers"]
        assert {"Mcp-Session-Id", "WWW-Authenticate"} <= set(exposed.split(", "))


async def test_streams(server: HttpServer) -> None:
    """Event streams can be read too."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(raw_request(b"", [("Origin", PAGE)], method="GET", path="/sse"))
        async with asyncio.timeout(20):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    finally:
        writer.close()
    assert "text/event-stream" in head
    assert f"access-control-allow-origin: {PAGE}" in head


async def test_with_a_gate() -> None:
    """A preflight needs no token, the challenge is readable, and the metadata allows all origins."""
    async with authority() as issuer, gated(issuer.settings(), http=HTTP) as server:
        assert (await preflight(server, PAGE)).status == 204
        refused = await discover(server, ("Origin", PAGE))
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, PAGE)
        assert "WWW-Authenticate" in refused.headers["access-control-expose-headers"]
        assert (await discover(server, ("Origin", PAGE), bearer(issuer.token()))).status == 200
        place = "/.well-known/oauth-protected-resource"
        metadata = await discover(server, ("Origin", PAGE), method="GET", path=place)
        assert metadata.headers["access-control-allow-origin"] == "*"


async def test_without_allowed_origins_nothing_is_wrapped(server: HttpServer) -> None:
    """Without allowed origins, the application is not wrapped."""
    assert type(server.app) is CrossOriginApp
    async with gated({}) as plain:
        assert type(plain.app) is HttpApp
