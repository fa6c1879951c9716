"""Quotas in a real Redis: what is kept there, and what happens when it is away."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from axolotl_core import ConfigurationError
from axolotl_core.policies.quota import QuotaStoreError, RateLimit, WindowLimit
from axolotl_server.stores.redis_quotas import RedisQuotaStore
from tests.support.core.quota_model import SECOND, claims_of
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.stores.redis_server import RedisServer

RATE = ("rate", RateLimit(0.01, 3.0), 1.0)
DAY = ("day", WindowLimit(3, "day"), 1.0)


@pytest.fixture
async def client(redis: RedisServer) -> AsyncIterator[Redis]:
    """Look into Redis, which is empty at first."""
    async with Redis(unix_socket_path=redis.socket, decode_responses=True) as opened:
        await opened.flushall()
        yield opened


def store_at(redis: RedisServer, timeout_seconds: float = PATIENCE_SECONDS) -> RedisQuotaStore:
    return RedisQuotaStore(redis.url, timeout_seconds=timeout_seconds)


async def test_replicas_share_one_count(redis: RedisServer, client: Redis) -> None:
    """Two stores with connections of their own give, together, as much as one."""
    first, second = store_at(redis), store_at(redis)
    taken = [await store.take(claims_of([RATE, DAY])) for store in (first, second, first, second)]
    assert [refusal is None for refusal in taken] == [True, True, True, False]
    await first.close()
    await second.close()


async def test_many_at_once_take_no_more(redis: RedisServer, client: Redis) -> None:
    """Of a hundred calls at the same time, over more connections than one, exactly as many pass as may."""
    stores = [store_at(redis) for _ in range(4)]
    claims = claims_of([("rate", RateLimit(0.001, 30.0), 1.0), ("day", WindowLimit(70, "day"), 1.0)])
    taken = await asyncio.gather(*(stores[number % 4].take(claims) for number in range(100)))
    assert sum(refusal is None for refusal in taken) == 30
    for store in stores:
        await store.close()


async def test_the_clock_is_that_of_redis(redis: RedisServer, client: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas agree on the time, whatever their own clocks say."""
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    store = store_at(redis)
    seconds, microseconds = await client.time()
    assert await store.take(claims_of([RATE])) is None
    amount, stamp = str(await client.get("axolotl:quota:rate")).split(":")
    assert 0 <= int(stamp) - (seconds * SECOND + microseconds) < PATIENCE_SECONDS * SECOND
    assert int(amount) > 0
    await store.close()


async def test_keys_go_when_they_say_nothing(redis: RedisServer, client: Redis) -> None:
    """Every key has the prefix and lives as long as its bucket is not full, or its window not over."""
    store = RedisQuotaStore(redis.url, prefix="shop:", timeout_seconds=PATIENCE_SECONDS)
    claims = claims_of([RATE, DAY, ("brief", RateLimit(1000.0, 5.0), 1.0)])
    assert await store.take(claims) is None
    assert set(await client.keys("*")) <= {"shop:rate", "shop:day", "shop:brief"}
    assert 100_000 - PATIENCE_SECONDS * 1000 < await client.pttl("shop:rate") <= 100_000
    assert 0 < await client.pttl("shop:day") <= 86_400_000
    assert await client.pttl("shop:brief") in (-2, 0, 1)
    assert await store.take(claims) is None
    assert 200_000 - PATIENCE_SECONDS * 1000 < await client.pttl("shop:rate") <= 200_000
    await store.close()


async def test_a_forgotten_script_is_brought_again(redis: RedisServer, client: Redis) -> None:
    """A Redis that does not know the script is given it, and then runs it by its digest."""
    store = store_at(redis)
    for _ in range(2):
        await client.script_flush()
        assert await store.take(claims_of([RATE])) is None
    before = (await client.info("commandstats"))["cmdstat_eval"]["calls"]
    assert await store.take(claims_of([RATE])) is None
    assert (await client.info("commandstats"))["cmdstat_eval"]["calls"] == before
    assert await store.take(claims_of([RATE])) is not None
    await store.close()


async def test_what_others_wrote_is_replaced(redis: RedisServer, client: Redis) -> None:
    """A value that is none of ours counts as none."""
    store = store_at(redis)
    await client.set("axolotl:quota:rate", "swordfish")
    await client.rpush("axolotl:quota:day", "swordfish")
    assert await store.take(claims_of([RATE, DAY])) is None
    assert str(await client.get("axolotl:quota:day")).startswith("1000:")
    await store.close()


async def test_a_restart_is_survived() -> None:
    """A store that finds its Redis gone says so, and goes on when there is one again."""
    with RedisServer() as server:
        store = store_at(server)
        assert await store.take(claims_of([RATE])) is None
        server.kill()
        server.start()
        assert await store.take(claims_of([RATE])) is None
        server.kill()
        with pytest.raises(QuotaStoreError, match=r"Redis at unix://.*redis\.sock"):
            await store.take(claims_of([RATE]))
        server.start()
        assert [await store.take(claims_of([RATE])) is None for _ in range(4)] == [True, True, True, False]
        await store.close()


async def test_a_redis_that_hangs_is_not_waited_for() -> None:
    """The wait has an end, a call can be cancelled at any moment of it, and late answers reach no other call."""
    with RedisServer() as server:
        store = store_at(server, timeout_seconds=0.05)
        patient = store_at(server)
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
        await store.close()
        await patient.close()


async def test_a_password_stays_inside() -> None:
    """What is told of a Redis that refuses us names its address, and no secret."""
    with RedisServer("--requirepass", "opensesame") as server:
        for url in (
            f"unix://user:swordfish@{server.socket}",
            f"unix://{server.socket}?password=swordfish",
            "redis://:swordfish@127.0.0.1:1/0?password=swordfish",
        ):
            store = RedisQuotaStore(url, timeout_seconds=PATIENCE_SECONDS)
            with pytest.raises(QuotaStoreError) as failure:
                await store.take(claims_of([DAY]))
            assert "swordfish" not in str(failure.value)
            assert "redis.sock" in str(failure.value) or "127.0.0.1:1" in str(failure.value)
            await store.close()
        right = RedisQuotaStore(f"unix://:opensesame@{server.socket}", timeout_seconds=PATIENCE_SECONDS)
        assert await right.take(claims_of([DAY])) is None
        await right.close()


@pytest.mark.parametrize("url", ["", "localhost:6379", "http://:swordfish@localhost", "redis://localhost:swordfish"])
def test_an_address_that_is_none(url: str) -> None:
    """A URL that names no Redis is a mistake in the configuration, and is not repeated."""
    with pytest.raises(ConfigurationError, match=r"quotas\.redis_url") as failure:
        RedisQuotaStore(url)
    assert "swordfish" not in str(failure.value)
