"""The official client obtains tokens through the challenges of the server."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from tests.support.authorization_server import Asked, Authority, Page, authority
from tests.support.servers.authenticated_server import gated
from tests.support.servers.serving import PATIENCE_SECONDS, free_port

READ = ["read"]


class Memory:
    """Stores what the client received."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def give_tokens(issuer: Authority) -> None:
    """Let the issuer sign tokens for any client."""

    def token(asked: Asked) -> Page:
        form = asked.form
        scope = form.get("scope", "")
        signed = issuer.token(aud=form["resource"], sub="robot", scope=scope, jti=str(time.time_ns()))
        answer = {"access_token": signed, "token_type": "Bearer", "expires_in": 300, "scope": scope}
        return Page(json.dumps(answer).encode())

    issuer.pages["/token"] = token
    metadata = {
        "issuer": issuer.url,
        "jwks_uri": f"{issuer.url}/jwks",
        "token_endpoint": f"{issuer.url}/token",
        "authorization_endpoint": f"{issuer.url}/authorize",
        "response_types_supported": ["code"],
        "grant_types_supported": ["client_credentials"],
    }
    issuer.say("/.well-known/oauth-authorization-server", metadata)


@asynccontextmanager
async def reached(issuer: Authority, mode: Any) -> AsyncIterator[Client]:
    """Connect a client that knows only the address of a server."""
    listener = free_port()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    auth = {"resource": url, "issuers": [issuer.url], "required_scopes": READ}
    provider = ClientCredentialsOAuthProvider(url, Memory(), "robot", "s3cret", issuer=issuer.url)
    async with (
        gated(auth, listener=listener, authorization={"denied_as": "forbidden"}),
        httpx2.AsyncClient(auth=provider, trust_env=False) as http,
    ):
        place: Any = streamable_http_client(url, http_client=http)
        async with Client(place, mode=mode, read_timeout_seconds=PATIENCE_SECONDS) as client:
            yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_from_the_challenge_to_a_call(mode: str) -> None:
    """The challenge leads to the metadata, the metadata to the issuer, and the token to a call."""
    async with authority() as issuer:
        give_tokens(issuer)
        async with reached(issuer, mode) as client:
            answer: Any = await client.call_tool("whoami", {})
        assert answer.structured_content["subject"] == "robot"
        assert answer.structured_content["scopes"] == READ
        assert issuer.count("/token") == 1


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_better_token(mode: str) -> None:
    """A call that needs more scopes makes the client fetch a new token and retry."""
    async with authority() as issuer:
        give_tokens(issuer)
        async with reached(issuer, mode) as client:
            answer: Any = await client.call_tool("pay", {})
            assert answer.content[0].text == "paid"
        asked = [one.form["scope"].split(" ") for one in issuer.asked if one.path == "/token"]
        assert asked[0] == READ
        assert {"payments", *READ} <= set(asked[-1])
