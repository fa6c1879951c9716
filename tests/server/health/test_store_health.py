"""Health of the stores that a server uses: degraded while one is down, and well again without a call."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from axolotl_core import tool
from axolotl_core.errors import InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.policies.quota import Claim, IQuotaStore, QuotaRefusal, QuotaStoreError
from axolotl_core.policies.tool_rules import ClaimResult, Idempotency
from axolotl_core.protocol.identity import Principal
from axolotl_server.stores.results import MemoryResultStore
from tests.support.authorization_server import authority
from tests.support.peers.wire import call, mirrored, raw_exchange, raw_request
from tests.support.servers.probed_server import Probed, probed
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.stores.redis_server import RedisServer

STORES = {"quota_store", "result_store", "session_store"}
LIMITED: Mapping[str, Any] = {"rules": {"one": {"rate_per_second": 1000}}}


@tool(idempotency=Idempotency())
async def pay(number: int) -> int:
    """Pay once."""
    return number


async def degraded(server: Probed) -> tuple[int, str, set[str]]:
    """Return the HTTP status, the overall state and the checks that are degraded."""
    status, content = await server.told()
    return status, content["status"], {name for name, one in content["checks"].items() if one["status"] == "degraded"}


async def until_well(server: Probed) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await degraded(server))[1] != "ok":
            pass


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [False, True], ids=["gone", "hanging"])
async def test_redis_is_down(hangs: bool) -> None:
    """While Redis is down, all stores in it are degraded, and probes are answered; recovery needs no call."""
    with RedisServer() as redis:
        settings = {"redis": {"url": redis.url}, "quotas": LIMITED}
        async with probed(tools=[pay], settings=settings) as server:
            assert await degraded(server) == (200, "ok", set())
            assert set(await server.checks()) >= STORES
            if hangs:
                redis.hang()
            else:
                redis.kill()
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await degraded(server) == (200, "degraded", STORES)
            if hangs:
                redis.go_on()
            else:
                await asyncio.to_thread(redis.start)
            await until_well(server)


async def test_only_stores_that_are_used_are_checked(tmp_path: Path) -> None:
    """Without quotas, idempotent tools and tokens, only shared sessions have a check."""
    async with probed(settings={"sessions": {"directory": str(tmp_path)}}) as server:
        assert set(await server.checks()) == {"serving", "calls", "event_loop", "session_store"}
    async with probed() as server:
        assert set(await server.checks()) == {"serving", "calls", "event_loop"}


class BrokenQuotas(IQuotaStore):
    """A store of a container that fails while it is told to."""

    broken = True

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        if self.broken:
            raise QuotaStoreError("the database is away")
        return None


class BrokenResults(MemoryResultStore):
    """A result store that fails."""

    async def claim(self, key: str, holder: str) -> ClaimResult:
        raise ConnectionError


async def send(server: Probed, name: str, **arguments: Any) -> int:
    headers = [*mirrored(name=name).items()]
    return (await raw_exchange(server.port, raw_request(call(name, arguments), headers))).status


async def test_stores_of_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that cannot be tried without a call is degraded after a call has failed, until one succeeds."""
    quotas = BrokenQuotas()
    monkeypatch.setattr("axolotl_server.access.quotas._STORE_RETRY_SECONDS", 0.001)
    settings = {"quotas": LIMITED}
    roles: dict[str, Any] = {"quota_store": quotas, "result_store": BrokenResults(10, 1000)}
    async with probed(tools=[pay], settings=settings, **roles) as server:
        assert await degraded(server) == (200, "ok", set())
        await send(server, "pay", number=1)
        assert await degraded(server) == (200, "degraded", {"quota_store", "result_store"})
        quotas.broken = False
        async with asyncio.timeout(PATIENCE_SECONDS):
            while "quota_store" in (await degraded(server))[2]:
                await send(server, "echo", text="x")


async def test_the_issuer_is_down() -> None:
    """While its keys cannot be loaded, the issuer is degraded; probes load them when they are there again."""
    async with authority() as issuer:
        keys = issuer.pages.pop("/jwks")
        settings = {"auth": issuer.settings(), "health": {"details": True}}
        async with probed(settings=settings) as server:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await degraded(server) != (200, "degraded", {"issuer_keys"}):
                    pass
            _, content = await server.told()
            assert "/jwks" in content["checks"]["issuer_keys"]["reason"]
            issuer.pages["/jwks"] = keys
            await until_well(server)
            issuer.open.clear()
            assert await degraded(server) == (200, "ok", set())


class FailingVerifier(ITokenVerifier):
    """A verifier whose service is down."""

    broken = True

    async def verify(self, token: str) -> Principal:
        if self.broken:
            raise ConnectionError
        raise InvalidToken("unknown")


async def test_a_verifier_that_fails() -> None:
    """A verifier that cannot be tried without a token is degraded after a failure, until it answers."""
    verifier = FailingVerifier()
    async with probed(token_verifier=verifier) as server:
        data = raw_request(call("echo"), [*mirrored(name="echo").items(), ("Authorization", "Bearer x")])
        assert (await raw_exchange(server.port, data)).status == 503
        assert await degraded(server) == (200, "degraded", {"token_verifier"})
        verifier.broken = False
        assert (await raw_exchange(server.port, data)).status == 401
        assert await degraded(server) == (200, "ok", set())
