"""Challenges for tools that need more scopes."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from axolotl_core import Principal
from axolotl_server import connect
from tests.support.audited_calls import MemorySink
from tests.support.authorization_server import Authority, authority
from tests.support.peers.token_client import Holder
from tests.support.peers.wire import call, message
from tests.support.servers.authenticated_server import asked, bearer, called, challenge_of, container, gated
from tests.support.servers.serving import HttpServer

FORBIDDEN = {"denied_as": "forbidden"}
OPEN = {"default": "allow", **FORBIDDEN}


@asynccontextmanager
async def serving(policy: dict[str, Any], **roles: Any) -> AsyncIterator[tuple[Authority, HttpServer]]:
    given = container(**roles)
    async with (
        authority() as issuer,
        gated(issuer.settings(required_scopes=["read"]), given, authorization=policy) as server,
    ):
        yield issuer, server


@pytest.mark.parametrize("policy", [FORBIDDEN, OPEN], ids=["without-rules", "with-a-default"])
async def test_a_tool_that_needs_more(policy: dict[str, Any]) -> None:
    """The response is 403 with all scopes that the tool needs; with them, the call runs."""
    async with serving(policy) as (issuer, server):
        reply = await called(server, "pay", bearer(issuer.token()))
        assert reply.status == 403
        challenge = challenge_of(reply)
        assert challenge["error"] == "insufficient_scope"
        assert challenge["scope"] == "read payments"
        assert challenge["resource_metadata"].startswith("https://mcp.example.com/.well-known/")
        answer = json.loads(reply.body)
        assert (answer["id"], answer["error"]["code"]) == (1, -32600)
        assert answer["error"]["message"] == "Forbidden: the token must have the scopes read payments"
        paid = await called(server, "pay", bearer(issuer.token(scope="read payments")))
        assert json.loads(paid.body)["result"]["content"][0]["text"] == "paid"


@pytest.mark.parametrize(
    ("method", "params", "name", "scope"),
    [
        ("prompts/get", {"name": "greet"}, "greet", "read letters"),
        ("resources/read", {"uri": "vault://gold"}, "vault://gold", "read vault"),
    ],
)
async def test_prompts_and_resources(method: str, params: dict[str, Any], name: str, scope: str) -> None:
    """Prompts and resources with scopes are treated alike."""
    async with serving(FORBIDDEN) as (issuer, server):
        reply = await asked(server, method, params, name, [bearer(issuer.token())])
        assert (reply.status, challenge_of(reply)["scope"]) == (403, scope)
        assert (await asked(server, method, params, name, [bearer(issuer.token(scope=scope))])).status == 200


async def test_a_hidden_feature_causes_no_challenge() -> None:
    """A hidden feature causes no challenge."""
    async with serving({"denied_as": "not_found"}) as (issuer, server):
        refused = await called(server, "pay", bearer(issuer.token()))
        missing = await called(server, "pax", bearer(issuer.token()))
        assert (refused.status, missing.status) == (200, 200)
        assert refused.error["message"] == "Tool not found: pay"
        assert "www-authenticate" not in refused.headers
        assert refused.headers.keys() == missing.headers.keys()


async def test_a_denying_rule_causes_no_challenge() -> None:
    """A feature that a rule denies causes no challenge, because no other token would help."""
    rule = {"name": "nobody pays", "effect": "deny", "what": {"names": ["pay"]}}
    async with serving({**OPEN, "rules": [rule]}) as (issuer, server):
        reply = await called(server, "pay", bearer(issuer.token()))
        assert reply.status == 200
        assert json.loads(reply.body)["result"]["isError"] is True
        assert "www-authenticate" not in reply.headers


async def test_a_session() -> None:
    """A client in a session gets the same challenge, also with streamed replies."""
    async with authority() as issuer:
        sections: Any = {"authorization": FORBIDDEN, "sessions": {"resumable": "replies"}}
        async with gated(issuer.settings(), **sections) as server, httpx2.AsyncClient() as http:
            holder = Holder(http, server)
            await holder.begin(issuer.token())
            reply = await holder.send(issuer.token(), call("pay", handshake=True))
            assert reply.status_code == 403
            assert 'scope="payments read"' in reply.headers["www-authenticate"]
            assert reply.headers["content-type"] == "application/json"
            again = await holder.send(issuer.token(scope="payments read"), call("pay", handshake=True))
            assert again.status_code == 200


async def test_a_batch() -> None:
    """In a batch, which has one status, the rejection is a normal result."""
    async with (
        authority() as issuer,
        gated(issuer.settings(), authorization=FORBIDDEN) as server,
        httpx2.AsyncClient() as http,
    ):
        holder = Holder(http, server)
        await holder.begin(issuer.token(), "2025-03-26")
        body = b"[%b,%b]" % (call("pay", handshake=True), message("ping", id=2))
        reply = await holder.send(issuer.token(), body)
        assert reply.status_code == 200
        refused = next(one for one in reply.json() if one["id"] == 1)
        assert refused["result"]["_meta"]["axolotl/reason"] == "forbidden"


async def test_the_record_of_a_denial() -> None:
    """The audit record names the principal and the reason."""
    sink = MemorySink()
    async with serving(FORBIDDEN, audit_sinks=(sink,)) as (issuer, server):
        assert (await called(server, "pay", bearer(issuer.token()))).status == 403
    [record] = sink.records
    assert (record.subject, record.outcome, record.rule) == ("ada", "denied", "scopes of the tool")
    assert record.reason == "the principal lacks payments"


async def test_without_a_gate() -> None:
    """Without authentication, and on other transports, the rejection is a normal result."""
    settings = {"authorization": OPEN}
    async with connect(container(settings=settings), principal=Principal("ada")) as client:
        refused = await client.call("pay")
    assert refused.is_error
    assert refused.meta["axolotl/reason"] == "forbidden"
    async with gated({}, authorization=OPEN) as server:
        reply = await called(server, "pay")
        assert reply.status == 200
        assert "www-authenticate" not in reply.headers


@pytest.mark.parametrize(("auth", "paid"), [({"api_keys": {"a": {"hash": f"sha256:{'0' * 64}"}}}, False), ({}, True)])
async def test_scopes_count_where_there_are_tokens(auth: dict[str, Any], paid: bool) -> None:
    """With authentication, the scopes of a tool are required even without a policy."""
    async with connect(container(settings={"auth": auth, "authorization": FORBIDDEN})) as client:
        assert (await client.call("pay")).is_error is not paid
