"""Authentication of all requests, and the protected resource metadata."""

import asyncio
import json
import logging
import sys
from typing import Any

import pytest

from axolotl_core import Principal
from axolotl_core.errors import ConfigurationError, InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_server import HttpApp, ServerHost, make_app
from tests.support.authorization_server import RESOURCE, authority
from tests.support.peers.wire import message, raw_exchange, raw_request
from tests.support.servers.authenticated_server import bearer, challenge_of, container, discover, gated, principal_of
from tests.support.servers.serving import until

ROOT = "/.well-known/oauth-protected-resource"
METADATA = f"https://mcp.example.com{ROOT}/mcp"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("PUT", "/mcp"),
        ("OPTIONS", "/mcp"),
        ("GET", "/sse"),
        ("POST", "/sse/messages"),
        ("GET", "/elsewhere"),
        ("GET", "/"),
    ],
)
async def test_every_request_needs_a_token(method: str, path: str) -> None:
    """Without a token every request gets a challenge, before any other response."""
    async with authority() as issuer:
        auth = issuer.settings(required_scopes=["read", "files:read"])
        async with gated(auth, http={"sse_path": "/sse"}) as server:
            reply = await discover(server, method=method, path=path)
            assert reply.status == 401
            assert challenge_of(reply) == {"resource_metadata": METADATA, "scope": "read files:read"}
            assert reply.error["code"] == -32600
            wrong = await discover(server, bearer("x"), method=method, path=path)
            assert (wrong.status, challenge_of(wrong)["error"]) == (401, "invalid_token")


@pytest.mark.parametrize("direct", [True, False])
async def test_the_order_of_checks(direct: bool) -> None:
    """Host and Origin are checked first, then the token, then the media types."""
    async with authority() as issuer, gated(issuer.settings()) as server:
        source = [] if direct else [("Origin", "http://localhost")]
        known = bearer(issuer.token())
        for headers, status in (
            ([("Content-Type", "text/plain")], 401),
            ([("Content-Type", "application/json"), ("Accept", "text/html")], 401),
            ([("Content-Type", "text/plain"), known], 415),
            ([("Content-Type", "application/json"), ("Accept", "text/html"), known], 406),
            ([("Content-Type", "text/plain")], 421),
        ):
            host = "example.com" if status == 421 else "localhost"
            data = raw_request(message("ping"), [*source, *headers], host=host)
            assert (await raw_exchange(server.port, data)).status == status


async def test_the_body_is_not_waited_for() -> None:
    """A request without a token is answered before its body is read."""
    async with authority() as issuer, gated(issuer.settings()) as server:
        data = raw_request(b"", [("Content-Type", "application/json")]).replace(
            b"Content-Length: 0", b"Content-Length: 1000000"
        )
        assert (await raw_exchange(server.port, data)).status == 401


@pytest.mark.parametrize("path", [ROOT, f"{ROOT}/mcp"])
async def test_metadata(path: str) -> None:
    """The metadata is public, for any host and origin."""
    async with authority() as issuer:
        auth = issuer.settings(required_scopes=["read"], resource="HTTPS://MCP.example.com/mcp")
        async with gated(auth, server={"title": "Desk"}) as server:
            request = raw_request(
                b"", [("Origin", "https://any.example.com")], method="GET", path=path, host="any.name"
            )
            reply = await raw_exchange(server.port, request)
            assert reply.status == 200
            assert reply.headers["access-control-allow-origin"] == "*"
            assert reply.headers["content-type"] == "application/json"
            assert json.loads(reply.body) == {
                "resource": RESOURCE,
                "authorization_servers": [issuer.url],
                "scopes_supported": ["read"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Desk",
            }
            preflight = await discover(server, method="OPTIONS", path=path)
            assert preflight.status == 204
            assert "MCP-Protocol-Version" in preflight.headers["access-control-allow-headers"]
            for method in ("POST", "DELETE"):
                refused = await discover(server, method=method, path=path)
                assert (refused.status, refused.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    ("resource", "http_path", "place"),
    [
        ("https://h.example.com/p/mcp", "/mcp", f"{ROOT}/p/mcp"),
        ("https://h.example.com/p/mcp", "/mcp", f"{ROOT}/mcp"),
        ("https://h.example.com", "/mcp", ROOT),
        ("https://h.example.com:8443/mcp/", "/mcp", f"{ROOT}/mcp"),
        ("http://127.0.0.1:9000/mcp", "/mcp", f"{ROOT}/mcp"),
    ],
)
async def test_where_the_metadata_is(resource: str, http_path: str, place: str) -> None:
    """The metadata path includes the path of the resource, also behind a proxy that strips a prefix."""
    async with authority() as issuer, gated(issuer.settings(resource=resource), http={"path": http_path}) as server:
        reply = await discover(server, method="GET", path=place)
        assert json.loads(reply.body)["resource"] == resource
        named = challenge_of(await discover(server))["resource_metadata"]
        assert named.startswith(resource.split("/mcp", maxsplit=1)[0].split("/p", maxsplit=1)[0])
        assert (await discover(server, method="GET", path=f"/.well{named.partition('/.well')[2]}")).status == 200


async def test_a_server_without_a_gate_has_no_metadata() -> None:
    """Without authentication there is no metadata and no challenge."""
    async with gated({}) as server:
        assert (await discover(server)).status == 200
        assert (await discover(server, bearer("nonsense"))).status == 200
        assert (await discover(server, method="GET", path=ROOT)).status == 404


class Verifier(ITokenVerifier):
    """A custom verifier whose behavior depends on the token."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.waits = asyncio.Event()

    async def verify(self, token: str) -> Principal:
        self.asked.append(token)
        if token == "hang":
            await self.waits.wait()
        if token == "cling":
            while not self.waits.is_set():
                try:
                    await self.waits.wait()
                except asyncio.CancelledError:
                    continue
        if token == "raise":
            raise RuntimeError(f"cannot read {token}")
        if token == "exit":
            raise SystemExit(3)
        if token == "nothing":
            return None  # type: ignore[return-value]
        if token == "bad":
            raise InvalidToken('so bad "that"\r\nX-Evil: 1')
        return Principal(token, "acme", frozenset({"read"}), claims={"exp": 2**40})


async def test_a_verifier_of_ones_own() -> None:
    """The container's verifier is called for every token, and returns the principal."""
    verifier = Verifier()
    async with gated({}, container(token_verifier=verifier)) as server:
        assert (await discover(server)).headers["www-authenticate"] == "Bearer"
        for _ in range(2):
            one = await principal_of(server, "ada")
            assert (one["subject"], one["tenant"], one["issuer"]) == ("ada", "acme", None)
        assert verifier.asked == ["ada", "ada"]


async def test_results_of_a_verifier_are_cached() -> None:
    """The result of a verifier is cached for the configured time."""
    verifier = Verifier()
    async with gated({"token_cache_seconds": 60}, container(token_verifier=verifier)) as server:
        for _ in range(3):
            assert (await discover(server, bearer("ada"))).status == 200
        assert verifier.asked == ["ada"]


@pytest.mark.parametrize("token", ["raise", "exit", "nothing", "hang", "cling"])
async def test_a_verifier_that_fails(token: str, caplog: pytest.LogCaptureFixture) -> None:
    """If a verifier fails, the request is rejected, and the log does not contain the message."""
    caplog.set_level(logging.INFO, "axolotl")
    verifier = Verifier()
    async with gated({"timeout_seconds": 0.05}, container(token_verifier=verifier)) as server:
        reply = await discover(server, bearer(token))
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert (await discover(server, bearer("ada"))).status == 200
        verifier.waits.set()
        await until(lambda: len(asyncio.all_tasks()) < 20)
    [line] = [one for one in caplog.messages if "verified" in one]
    assert "cannot read" not in line
    assert line.startswith("a token could not be verified: ")


async def test_a_reason_cannot_inject_headers() -> None:
    """The reason of a verifier cannot inject headers."""
    async with gated({}, container(token_verifier=Verifier())) as server:
        reply = await discover(server, bearer("bad"))
    assert reply.status == 401
    assert "x-evil" not in reply.headers
    assert challenge_of(reply)["error_description"] == "so bad ?that???X-Evil: 1"


@pytest.mark.parametrize(
    ("auth", "verifier", "finding"),
    [
        ({"issuers": ["https://id.example.com"], "resource": RESOURCE}, True, "There are two verifiers"),
        ({"required_scopes": ["read"]}, False, "Nothing verifies tokens"),
        ({"resource": RESOURCE}, False, "Nothing verifies tokens"),
    ],
)
async def test_settings_that_do_not_fit(auth: dict[str, Any], verifier: bool, finding: str) -> None:
    """Two verifiers, or settings without one, are rejected."""
    roles = {"token_verifier": Verifier()} if verifier else {}
    with pytest.raises(ConfigurationError, match=finding):
        async with gated(auth, container(**roles)):
            pass


async def test_an_invalid_verifier() -> None:
    """The role must provide a verifier."""
    with pytest.raises(ConfigurationError, match="The role token_verifier returned str; expected ITokenVerifier"):
        async with gated({}, container(token_verifier="x")):
            pass


async def test_expiry_is_checked_with_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cached token is rejected as soon as it expires."""
    monkeypatch.setattr("axolotl_server.access.jwt_verifier.CLOCK_SKEW_SECONDS", 0)
    monkeypatch.setattr("axolotl_server.access.verifiers.CLOCK_SKEW_SECONDS", 0)
    async with authority() as issuer, gated(issuer.settings()) as server:
        token = issuer.token(exp=issuer.claims()["iat"] + 2)
        assert (await discover(server, bearer(token))).status == 200
        async with asyncio.timeout(20):
            while (await discover(server, bearer(token))).status == 200:
                pass
        assert challenge_of(await discover(server, bearer(token)))["error_description"] == "the token has expired"


async def test_the_stream_of_the_first_revision() -> None:
    """Both endpoints of the SSE transport need a token, and a stream serves only its owner."""
    async with authority() as issuer, gated(issuer.settings(), http={"sse_path": "/sse"}) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            writer.write(raw_request(b"", [bearer(issuer.token())], method="GET", path="/sse"))
            async with asyncio.timeout(20):
                path = await _endpoint(reader)
            ping = message("ping")
            headers = [("Content-Type", "application/json")]
            for token, status in ((issuer.token(jti="new"), 202), (issuer.token(sub="eve"), 404)):
                request = raw_request(ping, [*headers, bearer(token)], path=path)
                assert (await raw_exchange(server.port, request)).status == status
            assert (await raw_exchange(server.port, raw_request(ping, headers, path=path))).status == 401
        finally:
            writer.close()


async def _endpoint(reader: asyncio.StreamReader) -> str:
    while not (line := await reader.readline()).startswith(b"data: "):
        pass
    return line[6:].strip().decode()


async def test_an_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the extra for token verification is missing, the error explains how to install it; API keys do not need it."""
    monkeypatch.delitem(sys.modules, "axolotl_server.access.jwt_verifier", raising=False)
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(ConfigurationError, match=r"^Setting auth\.issuers needs the extra auth: pip install"):
        async with gated({"issuers": ["https://id.example.com"], "resource": RESOURCE}):
            pass
    async with gated({"api_keys": {"ci": {"hash": f"sha256:{'0' * 64}"}}}) as server:
        assert (await discover(server)).status == 401


async def test_an_application_without_its_gate() -> None:
    """An application cannot be built without the configured authentication."""
    async with ServerHost(container(), flags={"auth": {"api_keys": {"ci": {"hash": f"sha256:{'0' * 64}"}}}}) as host:
        with pytest.raises(ConfigurationError, match=r"create it with make_app\(host\)"):
            HttpApp(host.handler, host.settings)
        make_app(host)
