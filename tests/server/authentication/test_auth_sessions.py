"""Sessions belong to one identity, not to one token."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from axolotl_core import Principal
from tests.support.authorization_server import RESOURCE, Authority, authority
from tests.support.peers.token_client import Holder
from tests.support.peers.wire import call
from tests.support.servers.authenticated_server import gated


@asynccontextmanager
async def session(**auth: Any) -> AsyncIterator[tuple[Authority, Holder]]:
    async with authority() as issuer, gated(issuer.settings(**auth)) as server, httpx2.AsyncClient() as http:
        yield issuer, Holder(http, server)


async def test_a_renewed_token_keeps_the_session() -> None:
    """A new token of the same user keeps the session, and its new scopes apply."""
    async with session() as (issuer, holder):
        await holder.begin(issuer.token(jti="1"))
        renewed = issuer.token(jti="2", scope="read write", exp=issuer.claims()["exp"] + 60)
        reply = await holder.send(renewed, call("whoami", handshake=True))
        assert reply.json()["result"]["structuredContent"]["scopes"] == ["read", "write"]


@pytest.mark.parametrize("other", [{"sub": "eve"}, {"sub": "ADA"}, {"tenant": "evil"}, {"tenant": None}], ids=str)
async def test_another_user_finds_no_session(other: dict[str, Any]) -> None:
    """For any other user, the session does not exist, with every method."""
    async with session(tenant_claim="tenant") as (issuer, holder):
        own, foreign = issuer.token(tenant="acme"), issuer.token(**{"tenant": "acme", **other})
        await holder.begin(own)
        for method, body in (("POST", call("whoami", handshake=True)), ("GET", None), ("DELETE", None)):
            assert (await holder.send(foreign, body, method)).status_code == 404
        assert (await holder.send(own, call("whoami", handshake=True))).status_code == 200
        assert (await holder.send(own, None, "DELETE")).status_code == 200


async def test_a_session_id_is_not_a_token() -> None:
    """A session id does not replace a valid token."""
    async with session() as (issuer, holder):
        await holder.begin(issuer.token())
        for token in (None, issuer.token(exp=1), "nonsense"):
            for method, body in (("POST", call("whoami", handshake=True)), ("GET", None), ("DELETE", None)):
                reply = await holder.send(token, body, method)
                assert reply.status_code == 401
                assert reply.headers["www-authenticate"].startswith("Bearer ")


async def test_the_same_name_of_another_issuer() -> None:
    """The same subject of two issuers is two identities."""
    async with authority() as one, authority() as other:
        for issuer in (one, other):
            metadata = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks"}
            issuer.say("/.well-known/oauth-authorization-server", metadata)
        auth = {"resource": RESOURCE, "issuers": [one.url, other.url]}
        async with gated(auth) as server, httpx2.AsyncClient() as http:
            holder = Holder(http, server)
            await holder.begin(one.token())
            assert (await holder.send(other.token(), call("whoami", handshake=True))).status_code == 404
            assert (await holder.send(one.token(), call("whoami", handshake=True))).status_code == 200


def test_identity() -> None:
    """Issuer, tenant and subject form the identity; other claims do not matter."""
    one = Principal("ada", "acme", frozenset({"read"}), frozenset({"clerk"}), {"exp": 1}, "https://id.example.com")
    renewed = Principal("ada", "acme", frozenset(), frozenset(), {"exp": 2}, "https://id.example.com")
    others = [
        Principal("eve", "acme", issuer="https://id.example.com"),
        Principal("ada", "evil", issuer="https://id.example.com"),
        Principal("ada", "acme", issuer="https://other.example.com"),
        Principal("ada", "acme"),
    ]
    assert one.identity == renewed.identity
    assert one.identity not in [other.identity for other in others]
