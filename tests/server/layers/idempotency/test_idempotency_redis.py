"""Idempotency of replicas that share a Redis, including outages."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from axolotl_core import ToolError
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Overloaded
from axolotl_core.policies.tool_rules import ResultStoreError
from axolotl_server.settings.calls import IdempotencySettings
from axolotl_server.stores.redis_client import RedisClient
from axolotl_server.stores.results import MemoryResultStore, RedisResultStore, make_result_store
from tests.support.counting_tools import Till, text
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.stores.redis_server import RedisServer, redis_client

FAST: dict[str, Any] = {"poll_seconds": 0.001, "store_timeout_seconds": PATIENCE_SECONDS}


@pytest.fixture
async def client(redis: RedisServer) -> AsyncIterator[Redis]:
    """A client of the empty Redis."""
    async with Redis(unix_socket_path=redis.socket) as opened:
        await opened.flushall()
        yield opened


class Replicas:
    """Servers that share a Redis."""

    def __init__(self, url: str, number: int = 2, *, claim_seconds: float = PATIENCE_SECONDS, **options: Any) -> None:
        seconds = options.get("store_timeout_seconds", PATIENCE_SECONDS)
        self._clients = [RedisClient(url) for _ in range(number)]
        self.stores = [
            RedisResultStore(client, claim_seconds=claim_seconds, timeout_seconds=seconds) for client in self._clients
        ]
        self.tills = [Till(store=store, **{**FAST, **options}) for store in self.stores]

    async def __aenter__(self) -> list[Till]:
        return self.tills

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            await client.close()

    @property
    def runs(self) -> int:
        return sum(till.tool.runs["k"] for till in self.tills)


async def test_the_second_replica_waits(redis: RedisServer, client: Redis) -> None:
    """A call at another replica waits for the running one and gets its result."""
    async with Replicas(redis.url) as (first, second):
        one = first.begin()
        await first.running()
        other = second.begin()
        await first.end("paid")
        assert await one.outcome() == "k paid"
        replay = await other.outcome()
        assert (text(replay), replay.meta) == ("k paid", {"axolotl/replayed": True})
        assert second.tool.runs["k"] == 0


async def test_many_at_once_on_many_replicas(redis: RedisServer, client: Redis) -> None:
    """Of many equal calls at many replicas, one runs."""
    replicas = Replicas(redis.url, 4)
    async with replicas as tills:
        calls = [tills[number % 4].begin() for number in range(40)]
        await until(lambda: replicas.runs)
        (busy,) = [till for till in tills if till.tool.runs["k"]]
        await busy.end("paid")
        assert {text(await call.outcome()) for call in calls} == {"k paid"}
        assert replicas.runs == 1


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
async def test_a_failed_run_is_taken_over(redis: RedisServer, client: Redis, how: str) -> None:
    """If the run of the first replica fails or is stopped, the second one runs."""
    async with Replicas(redis.url) as (first, second):
        one = first.begin()
        await first.running()
        other = second.begin()
        if how == "fails":
            await first.end(ToolError("no"))
        else:
            one.stop(CancelReason.TIMEOUT)
        await one.outcome()
        await second.end("paid")
        assert await other.outcome() == "k paid"
        assert await client.pttl(next(iter(await client.keys()))) > 0


async def test_a_replica_that_died(redis: RedisServer, client: Redis) -> None:
    """The claim of a dead replica expires, and another replica runs."""
    replicas = Replicas(redis.url, claim_seconds=0.05)
    async with replicas as (till, _):
        dead = replicas.stores[1]
        call = till.begin()
        await till.running()
        (name,) = [key.decode() for key in await client.keys() if isinstance(key, bytes)]
        await till.end("paid")
        await call.outcome()
        await client.delete(name)
        assert await dead.claim(name.removeprefix("axolotl:result:"), "gone") == "mine"
        again = till.begin()
        await till.end("paid again")
        assert await again.outcome() == "k paid again"


async def test_a_claim_lives_as_long_as_its_work(redis: RedisServer, client: Redis) -> None:
    """A claim is renewed while its run takes longer than the claim lasts."""
    async with Replicas(redis.url, claim_seconds=0.6) as (first, second), asyncio.timeout(PATIENCE_SECONDS):
        one = first.begin()
        await first.running()
        (name,) = await client.keys()
        claim, renewals, lived = await client.get(name), 0, await client.pttl(name)
        while renewals < 4:
            await asyncio.sleep(0)
            left = await client.pttl(name)
            renewals, lived = renewals + (left > lived), left
        assert await client.get(name) == claim
        other = second.begin()
        await first.end("paid")
        assert await one.outcome() == "k paid"
        assert text(await other.outcome()) == "k paid"
        assert second.tool.runs["k"] == 0


@pytest.mark.parametrize("said", ["paid", ToolError("no"), None])
async def test_a_claim_is_not_renewed_after_the_run(redis: RedisServer, client: Redis, said: Any) -> None:
    """After the run, its claim is not renewed."""
    before = asyncio.all_tasks()
    async with Replicas(redis.url, claim_seconds=1000) as (till, _):
        call = till.begin()
        await till.running()
        assert len(asyncio.all_tasks()) > len(before)
        if said is None:
            call.stop(CancelReason.TIMEOUT)
        else:
            await till.end(said)
        await call.outcome()
        await until(lambda: asyncio.all_tasks() == before)


async def test_a_lost_claim_is_logged(redis: RedisServer, client: Redis, caplog: pytest.LogCaptureFixture) -> None:
    """If another replica has taken the key, its result is kept, and the log reports that the work ran twice."""
    async with Replicas(redis.url) as (till, _):
        call = till.begin()
        await till.running()
        (name,) = await client.keys()
        await client.set(name, b"c:another")
        with caplog.at_level(logging.ERROR, "axolotl"):
            await till.end("paid")
            assert await call.outcome() == "k paid"
        assert "another replica may have done the same work" in caplog.text
        assert await client.get(name) == b"c:another"


async def test_keys_reveal_nothing_about_a_call(redis: RedisServer, client: Redis) -> None:
    """Keys in Redis reveal no arguments or principals."""
    async with Replicas(redis.url) as (till, _):
        call = till.begin("swordfish")
        await till.running("swordfish")
        (name,) = await client.keys()
        assert b"swordfish" not in name
        assert b"anonymous" not in name
        assert len(name) < 100
        call.stop(CancelReason.TIMEOUT)
        await call.outcome()
        await until(lambda: not till.tool.ends)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await client.keys():
                pass


async def test_closed_during_an_outage(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    """With `closed`, calls are rejected during an outage, and run when Redis is back."""
    with RedisServer() as own:
        async with Replicas(own.url) as (till, _):
            own.kill()
            refused = await till.begin().outcome()
            assert isinstance(refused, Overloaded)
            assert refused.meta == {"axolotl/retryAfterMs": 1000, "axolotl/reason": "results_unavailable"}
            assert re.search(r"The result store is unavailable \(Redis at .*\); calls refused: 1", caplog.text)
            own.start()
            call = till.begin()
            await till.end("paid")
            assert await call.outcome() == "k paid"


async def test_open_during_an_outage(redis: RedisServer) -> None:
    """With `open`, calls run during an outage; calls in one process still share a run, but nothing is stored."""
    with RedisServer() as own:
        async with Replicas(own.url, on_store_failure="open") as (till, _):
            own.kill()
            calls = [till.begin() for _ in range(3)]
            await till.end("paid")
            assert [await call.outcome() for call in calls] == ["k paid"] * 3
            again = till.begin()
            await till.end("again")
            assert await again.outcome() == "k again"


async def test_redis_fails_during_a_run(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    """If Redis fails during a run, the call is answered, and the log reports that the result is not stored."""
    with RedisServer() as own:
        async with Replicas(own.url) as (till, _):
            call = till.begin()
            await till.running()
            own.kill()
            with caplog.at_level(logging.ERROR, "axolotl"):
                await till.end("paid")
                assert await call.outcome() == "k paid"
            assert "could not be stored" in caplog.text


async def test_redis_hangs(redis: RedisServer) -> None:
    """If Redis hangs, a call takes at most the configured time."""
    with RedisServer() as own:
        async with Replicas(own.url, store_timeout_seconds=0.02) as (till, _):
            own.hang()
            assert isinstance(await till.begin().outcome(), Overloaded)
            own.go_on()


async def test_a_stop_while_the_key_is_claimed(redis: RedisServer, client: Redis) -> None:
    """A call that is stopped during its start leaves no claim."""
    async with Replicas(redis.url) as (till, _):
        for turns in range(12):
            call = till.begin()
            for _ in range(turns):
                await asyncio.sleep(0)
            call.stop(CancelReason.TIMEOUT)
            assert isinstance(await call.outcome(), asyncio.CancelledError)
        last = till.begin()
        await till.end("paid")
        assert await last.outcome() == "k paid"


async def test_store_errors_contain_no_password(redis: RedisServer) -> None:
    """Store errors show the address without its password."""
    async with redis_client("redis://user:swordfish@127.0.0.1:1/0") as client:
        store = RedisResultStore(client, timeout_seconds=PATIENCE_SECONDS)
        with pytest.raises(ResultStoreError, match=r"redis://127\.0\.0\.1:1/0") as raised:
            await store.claim("k", "a")
    assert "swordfish" not in str(raised.value)


async def test_the_store_that_settings_ask_for() -> None:
    """A store of the container takes precedence, then Redis, then memory."""
    own, settings = MemoryResultStore(1, 1), IdempotencySettings()
    async with redis_client("redis://127.0.0.1:1") as redis:
        assert make_result_store(settings, redis, own) is own
        assert isinstance(make_result_store(settings, redis), RedisResultStore)
    assert isinstance(make_result_store(settings, None), MemoryResultStore)
