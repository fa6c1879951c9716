"""Rules that count requests of any method."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from axolotl_core import ConfigurationError
from axolotl_core.policies.quota import Claim, IQuotaStore, QuotaRefusal, QuotaStoreError
from axolotl_server import RemoteError, ServerHost, connect
from axolotl_server.access.api_keys import hash_key
from tests.support.peers.wire import INITIALIZE, JSON_HEADERS, META, call, message, mirrored
from tests.support.servers.serving import serving
from tests.support.tools import Echo, container_of

ONE, OTHER = "axk_key-of-one-caller", "axk_key-of-another-caller"
AUTH: Mapping[str, Any] = {
    "api_keys": {
        "one": {"hash": hash_key(ONE), "tenant": "acme"},
        "other": {"hash": hash_key(OTHER), "tenant": "acme"},
    }
}
LIST = message("tools/list", {"_meta": META})


def rules(**rule: Any) -> dict[str, Any]:
    """Settings with one rule, whose window does not end during a test."""
    return {"quotas": {"rules": {"polite": {"counts": "requests", "limit": 2, "window": "day", **rule}}}}


@asynccontextmanager
async def http(address: str = "192.0.2.1", **settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve over HTTP to a client at an address."""
    given = {"http": {"allowed_hosts": ["server"]}, **settings}
    async with serving(container_of(Echo()), given) as server:
        yield client_at(address, server.app)


def client_at(address: str, app: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app, client=(address, 1)), base_url="http://server")


async def post(client: httpx2.AsyncClient, method: str = "tools/list", token: str | None = None) -> httpx2.Response:
    """Send a request of a method."""
    own = {} if token is None else {"Authorization": f"Bearer {token}"}
    if method == "initialize":
        return await client.post("/mcp", content=message(method, INITIALIZE), headers={**JSON_HEADERS, **own})
    if method == "tools/call":
        return await client.post("/mcp", content=call("echo"), headers={**mirrored(name="echo"), **own})
    return await client.post("/mcp", content=message(method, {"_meta": META}), headers={**mirrored(method), **own})


async def test_every_method_counts() -> None:
    """Lists, handshakes and calls count together, and what is refused gets 429 with Retry-After."""
    async with http(**rules(limit=4)) as client:
        for method in ("tools/list", "initialize", "tools/call", "server/discover"):
            assert (await post(client, method)).status_code == 200
        for method in ("tools/list", "initialize", "tools/call", "server/discover"):
            refused = await post(client, method)
            assert refused.status_code == 429
            error = refused.json()["error"]
            assert error["code"] == -32603
            assert error["message"].startswith("The quota is used up: the limit 'polite' is 4 per day; try again in ")
            assert (error["data"]["reason"], error["data"]["rule"]) == ("quota", "polite")
            assert int(refused.headers["retry-after"]) == -(-error["data"]["retryAfterMs"] // 1000)


async def test_a_rate() -> None:
    """A rate limits requests per second, and the hint says when the next one fits."""
    rule = {"counts": "requests", "rate_per_second": 0.001, "burst": 1}
    async with http(quotas={"rules": {"slow": rule}}) as client:
        assert (await post(client)).status_code == 200
        error = (await post(client)).json()["error"]
        assert error["message"] == (
            "Too many requests: the limit 'slow' is 0.001 per second, 1 at once; try again in 17 minutes"
        )
        assert 900_000 < error["data"]["retryAfterMs"] <= 1_000_000


@pytest.mark.parametrize(
    ("per", "statuses"),
    [
        pytest.param([], [200, 429, 429], id="all"),
        pytest.param(["tenant"], [200, 429, 429], id="tenant"),
        pytest.param(["principal"], [200, 200, 429], id="principal"),
    ],
)
async def test_what_is_counted_separately(per: list[str], statuses: list[int]) -> None:
    """Requests are counted per principal, per tenant, or all together."""
    async with http(auth=AUTH, **rules(limit=1, per=per)) as client:
        assert [(await post(client, token=token)).status_code for token in (ONE, OTHER, ONE)] == statuses


async def test_anonymous_callers_are_told_apart_by_address() -> None:
    """Without authentication, requests are counted per address."""
    async with serving(
        container_of(Echo()), {"http": {"allowed_hosts": ["server"]}, **rules(limit=1, per=["principal"])}
    ) as server:
        one, other = client_at("192.0.2.1", server.app), client_at("192.0.2.2", server.app)
        assert [(await post(client)).status_code for client in (one, other, one)] == [200, 200, 429]


async def test_without_http() -> None:
    """On other transports the error says when to try again."""
    async with connect(container_of(Echo()), settings=rules()) as client:
        for _ in range(2):
            await client.request("tools/list", {})
        with pytest.raises(RemoteError, match="The quota is used up") as refused:
            await client.request("tools/list", {})
        assert refused.value.data["retryAfterMs"] > 0


class Broken(IQuotaStore):
    """A store that is always down."""

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        raise QuotaStoreError("it is down")


async def test_a_store_that_is_down() -> None:
    """If limits cannot be checked, requests are refused with 503, or let through, as the settings say."""
    for choice, status in (("closed", 503), ("open", 200)):
        settings = rules()
        settings["quotas"]["on_store_failure"] = choice
        container = container_of(Echo())
        async with serving(
            container, {"http": {"allowed_hosts": ["server"]}, **settings}, quota_store=Broken()
        ) as server:
            reply = await post(client_at("192.0.2.1", server.app))
            assert reply.status_code == status
            assert status == 200 or reply.headers["retry-after"] == "1"


async def test_nothing_is_wrapped_without_such_a_rule() -> None:
    """Rules that count calls add nothing to other methods, and rules that count requests nothing to features."""
    for counts, wrapped in (("calls", False), ("requests", True)):
        async with ServerHost(container_of(Echo()), flags=rules(counts=counts)) as host:
            era = host.handler.era_of("2025-11-25")
            names = [getattr(method, "__qualname__", "") for method in era.methods.values()]
            assert [name.startswith("RequestQuotas.") for name in names] == [wrapped] * len(names)
            [binding] = host.assembly.tools.bindings()
            assert ("QuotaLayer" in binding.invoke.__qualname__) is not wrapped


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        pytest.param({"tools": ["echo"]}, "a rule that counts requests applies to all of them", id="tools"),
        pytest.param({"per": ["tool"]}, "it can only be per principal or tenant", id="per-tool"),
        pytest.param({"limit": 0.5}, "0.5 per day never allows a request: raise it to at least 1", id="too-low"),
        pytest.param({"counts": "messages"}, "calls", id="unknown"),
    ],
)
async def test_rules_that_cannot_be_applied(rule: Any, problem: str) -> None:
    """A rule that cannot count requests prevents the start."""
    with pytest.raises(ConfigurationError, match=problem):
        async with ServerHost(container_of(Echo()), flags=rules(**rule)):
            pass
