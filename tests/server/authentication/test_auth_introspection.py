"""Token introspection."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from axolotl_core import Principal
from axolotl_core.policies.access import ITokenVerifier
from axolotl_server.access.fetcher import HttpFetcher, Unavailable
from axolotl_server.access.gate import token_sender
from axolotl_server.access.introspection import IntrospectionVerifier
from axolotl_server.settings.authentication import AuthSettings
from tests.support.authorization_server import RESOURCE, Asked, Authority, Page, authority
from tests.support.peers.memory_peer import container_with
from tests.support.servers.authenticated_server import bearer, challenge_of, discover, gated, principal_of
from tests.support.servers.restricted_servers import look
from tests.support.servers.serving import HttpServer, until

SECRET = "s3cret/with:signs"


def settings(issuer: Authority, **changes: Any) -> dict[str, Any]:
    return {
        "resource": RESOURCE,
        "authorization_servers": [issuer.url],
        "introspection_url": f"{issuer.url}/introspect",
        "introspection_client_id": "axolotl & co",
        "introspection_client_secret": SECRET,
        **changes,
    }


def active(**changes: Any) -> dict[str, Any]:
    usual = {"active": True, "sub": "ada", "aud": RESOURCE, "exp": int(time.time()) + 300, "scope": "read write"}
    return {name: value for name, value in {**usual, **changes}.items() if value is not None}


@asynccontextmanager
async def asked_about(answer: Any, *, page: dict[str, Any] | None = None, **auth: Any) -> AsyncIterator[Any]:
    """A server and its introspection endpoint."""
    async with authority() as issuer:
        issuer.say("/introspect", answer, **(page or {}))
        async with gated(settings(issuer, **auth)) as server:
            yield server, issuer


async def test_an_active_token() -> None:
    """The request follows the RFC, and the response becomes the principal."""
    async with asked_about(active(tenant="acme", roles=["clerk"]), tenant_claim="tenant") as (server, issuer):
        one = await principal_of(server, "opaque-token")
        [asked] = issuer.asked
    assert (one["subject"], one["tenant"], one["scopes"], one["roles"]) == ("ada", "acme", ["read", "write"], ["clerk"])
    assert one["issuer"] == f"{issuer.url}/introspect"
    assert (asked.method, asked.form) == ("POST", {"token": "opaque-token", "token_type_hint": "access_token"})
    scheme, _, credentials = asked.headers["authorization"].partition(" ")
    assert scheme == "Basic"
    assert base64.b64decode(credentials) == b"axolotl%20%26%20co:s3cret%2Fwith%3Asigns"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"active": False}, id="inactive"),
        pytest.param(active(active=None), id="silent"),
        pytest.param(active(active="true"), id="text"),
        pytest.param(active(active=1), id="number"),
        pytest.param(active(exp=1), id="expired"),
        pytest.param(active(exp="soon"), id="end-is-text"),
        pytest.param(active(exp=True), id="end-is-true"),
        pytest.param(active(exp=10**400), id="end-is-huge"),
        pytest.param(active(nbf=2**40), id="not-yet"),
        pytest.param(active(aud="https://other.example.com"), id="for-others"),
        pytest.param(active(aud=None), id="for-nobody"),
        pytest.param(active(sub=None), id="of-nobody"),
        pytest.param(active(sub=7), id="of-a-number"),
        pytest.param(active(scope=7), id="scopes-are-a-number"),
        pytest.param(active(iss=7), id="issuer-is-a-number"),
        pytest.param(active(nonce="n-0S6"), id="id-token"),
        pytest.param(active(token_use="refresh"), id="refresh-token"),
        pytest.param(active(events={}), id="logout-token"),
        pytest.param(active(token_type="DPoP", cnf={"jkt": "0ZcOCORZNYy"}), id="bound-to-a-key"),
    ],
)
async def test_unclear_responses_reject_the_token(answer: dict[str, Any]) -> None:
    """Any unclear response rejects the token."""
    async with asked_about(answer) as (server, _):
        reply = await discover(server, bearer("opaque"))
        assert reply.status == 401
        assert challenge_of(reply)["error"] == "invalid_token"


async def test_the_issuer_it_names() -> None:
    """If issuers are configured, tokens of other issuers are rejected."""
    issuers = ["https://id.example.com"]
    async with asked_about(active(iss="https://id.example.com"), issuers=issuers) as (server, issuer):
        assert (await principal_of(server, "one"))["issuer"] == "https://id.example.com"
        issuer.say("/introspect", active(iss="https://evil.example.com"))
        assert (await discover(server, bearer("two"))).status == 401


@pytest.mark.parametrize(
    ("answer", "page"),
    [
        pytest.param(active(), {"status": 500}, id="failing"),
        pytest.param(active(), {"status": 401}, id="refusing"),
        pytest.param(active(), {"status": 302, "headers": {"location": "/elsewhere"}}, id="redirecting"),
        pytest.param([active()], {}, id="list"),
        pytest.param("active", {}, id="text"),
        pytest.param(active(note="x" * 300_000), {}, id="large"),
    ],
)
async def test_an_issuer_that_fails(answer: Any, page: dict[str, Any]) -> None:
    """If the issuer does not answer correctly, requests are rejected with a retry hint."""
    async with asked_about(answer, page=page) as (server, issuer):
        issuer.say("/elsewhere", active())
        reply = await discover(server, bearer("opaque"))
        assert reply.status == 503
        assert reply.headers["retry-after"] == "1"
        assert issuer.count("/elsewhere") == 0


async def test_an_unreachable_issuer() -> None:
    """If the issuer is unreachable, requests are rejected."""
    async with authority() as issuer:
        auth = settings(issuer)
    async with gated(auth) as server:
        assert (await discover(server, bearer("opaque"))).status == 503


async def test_a_slow_issuer() -> None:
    """A slow issuer costs at most the timeout, and works again when it is back."""
    async with asked_about(active(), timeout_seconds=0.05) as (server, issuer):
        issuer.open.clear()
        replies = await asyncio.gather(*(discover(server, bearer(f"token-{number}")) for number in range(40)))
        assert {reply.status for reply in replies} == {503}
        issuer.open.set()
        await until_let_in(server)


async def until_let_in(server: HttpServer) -> None:
    async with asyncio.timeout(20):
        while (await discover(server, bearer("later"))).status != 200:
            pass


async def test_introspection_results_are_cached() -> None:
    """Valid and invalid tokens are cached, and concurrent requests share one introspection."""
    async with asked_about(active()) as (server, issuer):
        issuer.open.clear()
        waiting = [asyncio.ensure_future(discover(server, bearer("same"))) for _ in range(20)]
        await until(lambda: issuer.asked)
        issuer.open.set()
        assert {(await one).status for one in waiting} == {200}
        assert (await discover(server, bearer("same"))).status == 200
        issuer.say("/introspect", {"active": False})
        for _ in range(5):
            assert (await discover(server, bearer("bad"))).status == 401
        assert issuer.count("/introspect") == 2


async def test_a_revoked_token() -> None:
    """A revoked token is rejected when its cache entry has expired."""
    async with asked_about(active(), token_cache_seconds=0) as (server, issuer):
        assert (await discover(server, bearer("token"))).status == 200
        issuer.say("/introspect", {"active": False})
        assert (await discover(server, bearer("token"))).status == 401


async def test_bounds() -> None:
    """The cache and the number of waiting requests are bounded."""
    async with authority() as issuer:
        issuer.say("/introspect", {"active": False})
        said = AuthSettings.model_validate(settings(issuer))
        verifier = IntrospectionVerifier(said, HttpFetcher(20.0, 10_000), max_running=4, max_waiting=16, max_refused=10)
        names = [f"token-{number}" for number in range(15)]
        await asyncio.gather(*map(verifier.verify, names), return_exceptions=True)
        assert len(verifier._refused) == 10
        issuer.open.clear()
        waiting = [asyncio.ensure_future(verifier.verify(f"waiting-{number}")) for number in range(25)]
        await until(lambda: sum(one.done() for one in waiting) == 6)
        await verifier.close()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(one, BaseException) for one in outcomes)
        assert len(verifier._queries) == 0


@pytest.mark.parametrize("sender", ["192.0.2.1", "192.0.2.2"], ids=["other-address", "same-address"])
async def test_a_flood_of_unknown_tokens(sender: str) -> None:
    """While many unknown tokens of one address wait, a new token is verified next."""
    async with authority() as issuer:

        def answer(asked: Asked) -> Page:
            is_good = asked.form["token"] == "good"
            return Page(json.dumps(active() if is_good else {"active": False}).encode())

        issuer.pages["/introspect"] = answer
        issuer.open.clear()
        said = AuthSettings.model_validate(settings(issuer))
        verifier = IntrospectionVerifier(said, HttpFetcher(20.0, 10_000, max_connections=4), max_running=4)
        token_sender.set("192.0.2.2")
        flood = [asyncio.ensure_future(verifier.verify(f"bad-{number}")) for number in range(2500)]
        await until(lambda: len(issuer.asked) == 3)
        token_sender.set(sender)
        good = asyncio.ensure_future(verifier.verify("good"))
        if sender == "192.0.2.1":  # which needs no answer to the flood
            await until(lambda: len(issuer.asked) == 4)
        await until(lambda: len(verifier._queries) >= 3 + 1000)
        issuer.open.set()
        assert (await good).subject == "ada"
        assert "good" in [asked.form["token"] for asked in issuer.asked[:9]]
        await verifier.close()
        outcomes = await asyncio.gather(*flood, return_exceptions=True)
        dropped = [one for one in outcomes if isinstance(one, Unavailable)]
        assert len(dropped) == 2500 - 3 - 1000 + 1
        assert len(verifier._queries) == 0


async def test_a_token_that_nobody_waits_for() -> None:
    """A token whose requests have left is not asked about."""
    async with authority() as issuer:
        issuer.say("/introspect", active())
        issuer.open.clear()
        said = AuthSettings.model_validate(settings(issuer))
        verifier = IntrospectionVerifier(said, HttpFetcher(20.0, 10_000), max_running=1)
        first = asyncio.ensure_future(verifier.verify("first"))
        gone = asyncio.ensure_future(verifier.verify("gone"))
        await until(lambda: len(issuer.asked) == 1)
        gone.cancel()
        await asyncio.wait([gone])
        issuer.open.set()
        await first
        await verifier.verify("last")
        assert [asked.form["token"] for asked in issuer.asked] == ["first", "last"]
        await verifier.close()


async def test_the_gate_knows_the_sender() -> None:
    """The verifier of a token can find out which address sent it."""
    senders: list[str] = []

    class Noting(ITokenVerifier):
        async def verify(self, token: str) -> Principal:
            senders.append(token_sender.get())
            return Principal("ada")

    async with gated({}, container_with((look,), token_verifier=Noting())) as server:
        await discover(server, bearer("a"))
        await discover(server, bearer("b"), method="GET")
    assert senders == ["127.0.0.1", "127.0.0.1"]


async def test_the_metadata_names_the_servers() -> None:
    """The metadata names the authorization server, not the introspection endpoint."""
    async with asked_about(active()) as (server, issuer):
        reply = await discover(server, method="GET", path="/.well-known/oauth-protected-resource")
        assert json.loads(reply.body)["authorization_servers"] == [issuer.url]
