"""Quotas in a real Redis: its keys, and outages."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from redis.asyncio import Redis

from axolotl_core import ConfigurationError
from axolotl_core.policies.quota import QuotaStoreError, RateLimit, WindowLimit
from axolotl_server.stores.quotas import RedisQuotaStore
from axolotl_server.stores.redis_client import RedisClient
from tests.support.core.quota_model import SECOND, claims_of
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.stores.redis_server import RedisServer, redis_client

RATE = ("rate", RateLimit(0.01, 3.0), 1.0)
DAY = ("day", WindowLimit(3, "day"), 1.0)


@pytest.fixture
async def client(redis: RedisServer) -> AsyncIterator[Redis]:
    """Connect to an empty Redis."""
    async with Redis(unix_socket_path=redis.socket, decode_responses=True) as opened:
        await opened.flushall()
        yield opened


@asynccontextmanager
async def store_at(
    redis: RedisServer, timeout_seconds: float = PATIENCE_SECONDS, prefix: str = "axolotl:"
) -> AsyncIterator[RedisQuotaStore]:
    async with redis_client(redis.url, prefix=prefix) as client:
        yield RedisQuotaStore(client, timeout_seconds=timeout_seconds)


async def test_replicas_share_one_count(redis: RedisServer, client: Redis) -> None:
    """Two stores with separate connections share one limit."""
    async with store_at(redis) as first, store_at(redis) as second:
        taken = [await store.take(claims_of([RATE, DAY])) for store in (first, second, first, second)]
    assert [refusal is None for refusal in taken] == [True, True, True, False]


async def test_concurrent_calls_do_not_exceed_the_limit(redis: RedisServer, client: Redis) -> None:
    """Of a hundred concurrent calls over several connections, exactly the limit passes."""
    claims = claims_of([("rate", RateLimit(0.001, 30.0), 1.0), ("day", WindowLimit(70, "day"), 1.0)])
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(store_at(redis)) for _ in range(4)]
        taken = await asyncio.gather(*(stores[number % 4].take(claims) for number in range(100)))
    assert sum(refusal is None for refusal in taken) == 30


async def test_the_clock_is_that_of_redis(redis: RedisServer, client: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas use the clock of Redis, regardless of their own clocks."""
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    async with store_at(redis) as store:
        seconds, microseconds = await client.time()
        assert await store.take(claims_of([RATE])) is None
        amount, stamp = str(await client.get("axolotl:quota:rate")).split(":")
        assert 0 <= int(stamp) - (seconds * SECOND + microseconds) < PATIENCE_SECONDS * SECOND
        assert int(amount) > 0


async def test_keys_expire(redis: RedisServer, client: Redis) -> None:
    """Every key has the prefix and expires when its bucket is full or its window is over."""
    async with store_at(redis, prefix="shop:") as store:
        claims = claims_of([RATE, DAY, ("brief", RateLimit(1000.0, 5.0), 1.0)])
        assert await store.take(claims) is None
        assert set(await client.keys("*")) <= {"shop:quota:rate", "shop:quota:day", "shop:quota:brief"}
        assert 100_000 - PATIENCE_SECONDS * 1000 < await client.pttl("shop:quota:rate") <= 100_000
        assert 0 < await client.pttl("shop:quota:day") <= 86_400_000
        assert await client.pttl("shop:quota:brief") in (-2, 0, 1)
        assert await store.take(claims) is None
        assert 200_000 - PATIENCE_SECONDS * 1000 < await client.pttl("shop:quota:rate") <= 200_000


async def test_a_missing_script_is_uploaded_again(redis: RedisServer, client: Redis) -> None:
    """A Redis without the script gets it once, and then runs it by its digest."""
    async with store_at(redis) as store:
        for _ in range(2):
            await client.script_flush()
            assert await store.take(claims_of([RATE])) is None
        before = await uploads(client)
        assert await store.take(claims_of([RATE])) is None
        assert await uploads(client) == before > 0
        assert await store.take(claims_of([RATE])) is not None


async def uploads(client: Redis) -> int:
    """Count the uploads of scripts."""
    stats = await client.info("commandstats")
    return sum(stat["calls"] for name, stat in stats.items() if name.startswith("cmdstat_script"))


async def test_foreign_values_are_replaced(redis: RedisServer, client: Redis) -> None:
    """A value in an unknown format is treated as missing."""
    async with store_at(redis) as store:
        await client.set("axolotl:quota:rate", "swordfish")
        await client.rpush("axolotl:quota:day", "swordfish")
        assert await store.take(claims_of([RATE, DAY])) is None
        assert str(await client.get("axolotl:quota:day")).startswith("1000:")


async def test_a_restart_is_survived() -> None:
    """A store reports that Redis is unavailable, and recovers when Redis is back."""
    with RedisServer() as server:
        async with store_at(server) as store:
            assert await store.take(claims_of([RATE])) is None
            server.kill()
            server.start()
            assert await store.take(claims_of([RATE])) is None
            server.kill()
            with pytest.raises(QuotaStoreError, match=r"Redis at unix://.*redis\.sock"):
                await store.take(claims_of([RATE]))
            server.start()
            assert [await store.take(claims_of([RATE])) is None for _ in range(4)] == [True, True, True, False]


async def test_a_redis_that_hangs_is_not_waited_for() -> None:
    """Waiting ends at the timeout, a call can be cancelled meanwhile, and late replies reach no other call."""
    with RedisServer() as server:
        async with store_at(server, timeout_seconds=0.05) as store, store_at(server) as patient:
            assert await patient.take(claims_of([DAY])) is None
            server.hang()
            with pytest.raises(QuotaStoreError):
                await store.take(claims_of([RATE]))
            for turns in range(8):
                waiting = asyncio.ensure_future(patient.take(claims_of([DAY])))
                for _ in range(turns):
                    await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            server.go_on()
            refusals = [await patient.take(claims_of([("more", RateLimit(0.001, 2.0), 1.0)])) for _ in range(3)]
            assert [refusal and refusal.rule for refusal in refusals] == [None, None, "more"]


async def test_errors_contain_no_password() -> None:
    """Errors name the address of Redis but no secret."""
    with RedisServer("--requirepass", "opensesame") as server:
        for url in (
            f"unix://user:swordfish@{server.socket}",
            f"unix://{server.socket}?password=swordfish",
            "redis://:swordfish@127.0.0.1:1/0?password=swordfish",
        ):
            async with redis_client(url) as refused:
                store = RedisQuotaStore(refused, timeout_seconds=PATIENCE_SECONDS)
                with pytest.raises(QuotaStoreError) as failure:
                    await store.take(claims_of([DAY]))
                assert "swordfish" not in str(failure.value)
                assert "redis.sock" in str(failure.value) or "127.0.0.1:1" in str(failure.value)
        async with redis_client(f"unix://:opensesame@{server.socket}") as admitted:
            right = RedisQuotaStore(admitted, timeout_seconds=PATIENCE_SECONDS)
            assert await right.take(claims_of([DAY])) is None


@pytest.mark.parametrize("url", ["", "localhost:6379", "http://:swordfish@localhost", "redis://localhost:swordfish"])
def test_an_invalid_url(url: str) -> None:
    """An invalid URL is a configuration error that does not repeat the URL."""
    with pytest.raises(ConfigurationError, match=r"redis\.url is not the URL of a Redis") as failure:
        RedisClient(url)
    assert "swordfish" not in str(failure.value)
