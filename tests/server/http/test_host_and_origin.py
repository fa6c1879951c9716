"""Validation of the Host and Origin headers."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from axolotl_server.access.api_keys import hash_key
from tests.support.peers.wire import META, VERSION, message, raw_exchange, raw_request
from tests.support.servers.serving import HttpServer, serving
from tests.support.tools import Echo, container_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEADERS = [
    ("Content-Type", "application/json"),
    ("Accept", "application/json, text/event-stream"),
    ("MCP-Protocol-Version", VERSION),
    ("Mcp-Method", "server/discover"),
]
KEY = "axk_not-a-secret-but-long-enough"
BODY = message("server/discover", {"_meta": META})
SETTINGS = {
    "http": {
        "allowed_hosts": ["tools.example.com", "Pinned.example.com:8443"],
        "allowed_origins": ["https://app.example.com", "https://Other.example.com:8443"],
    }
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[HttpServer]:
    """A server with two additional host names and two allowed origins."""
    async with serving(container_of(Echo()), SETTINGS) as running:
        yield running


@pytest.mark.parametrize(
    ("host", "served"),
    [
        ("localhost", True),
        ("localhost:8000", True),
        ("LOCALHOST:80", True),
        ("127.0.0.1", True),
        ("127.0.0.1:65535", True),
        ("[::1]", True),
        ("[::1]:8000", True),
        ("tools.example.com", True),
        ("TOOLS.example.COM:443", True),
        ("pinned.example.com:8443", True),
        ("pinned.example.com", False),
        ("pinned.example.com:8444", False),
        ("", False),
        ("example.com", False),
        ("evil.example.com", False),
        ("tools.example.com.evil.org", False),
        ("evil-tools.example.com", False),
        ("localhost.evil.org", False),
        ("localhost.", False),
        ("localhost.:8000", False),
        ("127.0.0.1.evil.org", False),
        ("127.0.0.1.", False),
        ("127.0.0.2", False),
        ("127.1", False),
        ("2130706433", False),
        ("0x7f.0.0.1", False),
        ("0.0.0.0", False),
        ("[::]", False),
        ("[::ffff:127.0.0.1]", False),
        ("[0:0:0:0:0:0:0:1]", False),
        ("::1", False),
        ("[::1", False),
        ("[::1%25lo]", False),
        ("user@localhost", False),
        ("localhost@evil.org", False),
        ("localhost:80@evil.org", False),
        ("localhost:", False),
        ("localhost:http", False),
        ("localhost:123456", False),
        ("localhost:-1", False),
        ("localhost/", False),
        ("localhost#evil.org", False),
        ("localhost evil.org", False),
        ("localhost,evil.org", False),
        ("http://localhost", False),
        ("löcalhost", False),
        ("null", False),
    ],
)
async def test_host(server: HttpServer, host: str, served: bool) -> None:
    """Only loopback names and allowed hosts are accepted."""
    reply = await raw_exchange(server.port, raw_request(BODY, HEADERS, host=host))
    assert reply.status == (200 if served else 421)
    if not served:
        assert reply.error["code"] == -32600
        assert "http.allowed_hosts" in reply.error["message"]


@pytest.mark.parametrize(
    ("origin", "trusted"),
    [
        ("http://localhost", True),
        ("http://localhost:3000", True),
        ("https://localhost:3000", True),
        ("http://LOCALHOST:3000", True),
        ("HTTP://localhost", True),
        ("http://127.0.0.1:5173", True),
        ("http://[::1]", True),
        ("http://[::1]:5173", True),
        ("https://app.example.com", True),
        ("https://APP.example.com", True),
        ("https://other.example.com:8443", True),
        ("https://other.example.com", False),
        ("https://app.example.com:444", False),
        ("http://app.example.com", False),
        ("https://app.example.com/", False),
        ("https://app.example.com.evil.org", False),
        ("https://evil.org", False),
        ("https://evil-app.example.com", False),
        ("null", False),
        ("", False),
        ("*", False),
        ("file://", False),
        ("file://localhost", False),
        ("chrome-extension://localhost", False),
        ("localhost", False),
        ("//localhost", False),
        ("http://localhost.", False),
        ("http://localhost.evil.org", False),
        ("http://localhost:80.evil.org", False),
        ("http://127.0.0.1.evil.org", False),
        ("http://127.0.0.2", False),
        ("http://0.0.0.0", False),
        ("http://user@localhost", False),
        ("http://localhost@evil.org", False),
        ("http://localhost:80@evil.org", False),
        ("http://localhost/", False),
        ("http://localhost?evil.org", False),
        ("http://localhost#evil.org", False),
        ("http://localhost\\evil.org", False),
        ("http://localhost http://evil.org", False),
        ("http://localhost, http://evil.org", False),
        ("http://tools.example.com", False),
        ("http://[::1", False),
        ("http://::1", False),
        ("http://[::ffff:127.0.0.1]", False),
        ("http:///localhost", False),
        ("http:localhost", False),
    ],
)
async def test_origin(server: HttpServer, origin: str, trusted: bool) -> None:
    """Only loopback and allowed origins are accepted."""
    reply = await raw_exchange(server.port, raw_request(BODY, [*HEADERS, ("Origin", origin)]))
    assert reply.status == (200 if trusted else 403)
    if not trusted:
        assert "http.allowed_origins" in reply.error["message"]


async def test_a_request_without_an_origin_is_served(server: HttpServer) -> None:
    """Requests without an Origin are accepted."""
    assert (await raw_exchange(server.port, raw_request(BODY, HEADERS))).status == 200


async def test_a_request_without_a_host_is_rejected(server: HttpServer) -> None:
    """Requests without a Host are rejected."""
    assert (await raw_exchange(server.port, raw_request(BODY, HEADERS, host=None))).status == 421


@pytest.mark.parametrize("hosts", [("evil.org", "localhost"), ("localhost", "evil.org"), ("localhost", "localhost")])
async def test_two_hosts_are_rejected(server: HttpServer, hosts: tuple[str, str]) -> None:
    """Two Host headers are rejected in any order."""
    request = raw_request(BODY, [("Host", hosts[1]), *HEADERS], host=hosts[0])
    assert (await raw_exchange(server.port, request)).status == 400


@pytest.mark.parametrize("origins", [("http://evil.org", "http://localhost"), ("http://localhost", "http://evil.org")])
async def test_two_origins_are_rejected(server: HttpServer, origins: tuple[str, str]) -> None:
    """Two Origin headers are rejected in any order."""
    request = raw_request(BODY, [*HEADERS, *(("Origin", origin) for origin in origins)])
    assert (await raw_exchange(server.port, request)).status == 400


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PUT"])
@pytest.mark.parametrize(("host", "origin", "status"), [("evil.org", None, 421), ("localhost", "http://evil.org", 403)])
async def test_every_method_is_checked(
    server: HttpServer, method: str, host: str, origin: str | None, status: int
) -> None:
    """Host and Origin are checked before the method."""
    headers = [] if origin is None else [("Origin", origin)]
    reply = await raw_exchange(server.port, raw_request(b"", headers, method=method, host=host))
    assert reply.status == status


async def test_the_source_is_judged_before_the_path(server: HttpServer) -> None:
    """Host and Origin are checked before the path."""
    reply = await raw_exchange(server.port, raw_request(BODY, HEADERS, path="/elsewhere", host="evil.org"))
    assert reply.status == 421


@pytest.mark.parametrize(
    ("resource", "host", "served"),
    [
        ("https://Shop.example.com/mcp", "shop.example.com", True),
        ("https://shop.example.com/mcp", "SHOP.example.com:443", True),
        ("https://shop.example.com:443/mcp", "shop.example.com", True),
        ("https://shop.example.com/mcp", "shop.example.com:80", False),
        ("https://shop.example.com/mcp", "shop.example.com:8443", False),
        ("https://shop.example.com/mcp", "shop.example.com.", False),
        ("https://shop.example.com/mcp", "shop.example.com.evil.org", False),
        ("https://shop.example.com/mcp", "evil.shop.example.com", False),
        ("https://shop.example.com/mcp", "example.com", False),
        ("https://shop.example.com/mcp", "tools.example.com", True),
        ("https://shop.example.com:8443/mcp", "shop.example.com:8443", True),
        ("https://shop.example.com:8443/mcp", "shop.example.com", False),
        ("https://[2001:db8::1]/mcp", "[2001:db8::1]", True),
        ("https://[2001:db8::1]/mcp", "[2001:db8::2]", False),
        ("http://localhost:8000/mcp", "shop.example.com", False),
    ],
)
async def test_the_public_url(resource: str, host: str, served: bool) -> None:
    """The host and port of `auth.resource` are served without being listed; no other host is, and no other origin."""
    settings = {**SETTINGS, "auth": {"resource": resource, "api_keys": {"ann": {"hash": hash_key(KEY)}}}}
    async with serving(container_of(Echo()), settings) as running:
        headers = [*HEADERS, ("Authorization", f"Bearer {KEY}")]
        reply = await raw_exchange(running.port, raw_request(BODY, headers, host=host))
        assert reply.status == (200 if served else 421)
        page = ("Origin", resource.removesuffix("/mcp"))
        reply = await raw_exchange(running.port, raw_request(BODY, [*headers, page], host=host))
        assert reply.status == (403 if served else 421)
