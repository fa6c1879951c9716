"""Parsing of the Authorization header."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_server.access.gate import MalformedCredentials, bearer_token
from tests.support.authorization_server import Authority, authority
from tests.support.servers.authenticated_server import bearer, challenge_of, discover, gated
from tests.support.servers.serving import HttpServer

TOKENS = st.builds(str.__add__, st.text("AZaz09._~+/-", min_size=1, max_size=50), st.text("=", max_size=3))
SCHEMES = st.sampled_from(["Bearer", "bearer", "BEARER", "bEaReR"])


@given(SCHEMES, st.integers(1, 5), TOKENS)
def test_every_token_is_found(scheme: str, spaces: int, token: str) -> None:
    """The token is returned unchanged, with any spelling of the scheme and any number of spaces."""
    assert bearer_token(f"{scheme}{' ' * spaces}{token}".encode()) == token


@given(st.binary(max_size=200) | st.builds(bytes.__add__, st.just(b"Bearer "), st.binary(max_size=200)))
def test_every_header_is_parsed_or_rejected(header: bytes) -> None:
    """Any header has one token, none, or is rejected."""
    try:
        token = bearer_token(header)
    except MalformedCredentials:
        return
    if token is None:
        assert not header.lower().startswith(b"bearer ") or not header[6:].strip(b" ")
    else:
        assert re.fullmatch(r"[A-Za-z0-9._~+/-]+=*", token)
        assert header.lower() == b"bearer" + b" " * (len(header) - 6 - len(token)) + token.encode().lower()


@pytest.mark.parametrize("header", [b"Basic YTpi", b"Digest", b'DPoP abc, x="y"', b"Bearer", b"Bearer  ", b"BearerX a"])
def test_no_token(header: bytes) -> None:
    """A header of another scheme, or without a value, has no token."""
    assert bearer_token(header) is None


@pytest.mark.parametrize(
    "header",
    [
        b"Bearer a b",
        b"Bearer a,b",
        b"Bearer a, Bearer b",
        b"Bearer\ta",
        b"Bearer a\n",
        b"Bearer a=b",
        b"Bearer =",
        b"Bearer \xc3\xa4",
        b'Bearer "a"',
        b"Bearer a\x00",
        b"",
        b" Bearer a",
        b"=a",
        b"\x00duplicated",
    ],
)
def test_malformed(header: bytes) -> None:
    """Ambiguous headers are rejected."""
    with pytest.raises(MalformedCredentials):
        bearer_token(header)


class TestOverHttp:
    """The header over a real socket."""

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
    async def test_the_scheme_has_no_case(self, scheme: str) -> None:
        """The scheme is case-insensitive."""
        async with authority() as issuer, gated(issuer.settings()) as server:
            assert (await discover(server, ("Authorization", f"{scheme} {issuer.token()}"))).status == 200
            assert (await discover(server, ("AUTHORIZATION", f"{scheme} {issuer.token()}"))).status == 200

    async def test_refusals(self) -> None:
        """Two headers and malformed ones get 400; other schemes are treated like no header."""
        async with authority() as issuer, gated(issuer.settings()) as server:
            await _check_duplicates(server, issuer)
            for value in ("Bearer a b", "Bearer a,b", "Bearer =", ", Bearer a"):
                reply = await discover(server, ("Authorization", value))
                assert (reply.status, challenge_of(reply)["error"]) == (400, "invalid_request")
            for value in ("Basic YTpi", "Bearer", "Negotiate"):
                reply = await discover(server, ("Authorization", value))
                assert reply.status == 401
                assert "error" not in challenge_of(reply)

    async def test_a_token_that_is_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A header of more than 16 KiB is rejected unread."""
        monkeypatch.setattr("axolotl_server.http.server.http_protocol.MAX_HEAD_BYTES", 65_536)
        async with authority() as issuer, gated(issuer.settings()) as server:
            reply = await discover(server, ("Authorization", f"Bearer {'a' * 16 * 1024}"))
            assert (reply.status, challenge_of(reply)["error_description"]) == (401, "the token is too long")

    async def test_a_token_outside_the_header_is_ignored(self) -> None:
        """A token in the query, the body or another header is ignored."""
        async with authority() as issuer, gated(issuer.settings()) as server:
            token = issuer.token()
            form = f"access_token={token}".encode()
            for reply in (
                await discover(server, path=f"/mcp?access_token={token}"),
                await discover(server, body=form),
                await discover(server, ("X-Authorization", f"Bearer {token}"), ("Cookie", f"access_token={token}")),
                await discover(server, ("Proxy-Authorization", f"Bearer {token}")),
            ):
                assert reply.status == 401
                assert "error" not in challenge_of(reply)


async def _check_duplicates(server: HttpServer, issuer: Authority) -> None:
    good, bad = bearer(issuer.token()), bearer("nonsense")
    for pair in ((good, bad), (bad, good), (good, good), (good, ("authorization", "Basic YTpi"))):
        reply = await discover(server, *pair)
        assert reply.status == 400
        assert b"send the header Authorization only once" in reply.body
