"""The event store in Redis: sharing, expiry and outages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from axolotl_core.sessions import SessionStoreError
from axolotl_server.stores.redis_events import RedisEventStore
from tests.support.stores.redis_server import RedisServer, redis_client


@asynccontextmanager
async def store_at(redis: RedisServer, prefix: str = "axolotl:", **options: Any) -> AsyncIterator[RedisEventStore]:
    """Create a store with its own prefix."""
    limits = {"max_events": 100, "max_bytes": 10_000, "idle_seconds": 600.0, "timeout_seconds": 20.0}
    async with redis_client(redis.url, prefix=prefix) as client:
        yield RedisEventStore(client, **{**limits, **options})


async def test_two_processes_share_events(redis: RedisServer) -> None:
    """One process returns the events that another has stored, with IDs from one sequence."""
    async with store_at(redis, prefix="two:") as mine, store_at(redis, prefix="two:") as theirs:
        ids = [await store.append("session", "a", b"%d" % n) for n, store in enumerate([mine, theirs, mine, theirs])]
        assert ids == sorted(ids, key=int)
        assert [event.message for event in await theirs.after("session", "a", ids[0]) or ()] == [b"1", b"2", b"3"]
        await theirs.forget("session")
        assert await mine.after("session", "a", ids[0]) is None


async def test_concurrent_appends(redis: RedisServer) -> None:
    """Concurrent appends get unique IDs and respect the limits."""
    async with store_at(redis, prefix="once:", max_events=10) as store:
        ids = await asyncio.gather(*(store.append("session", "a", b"x") for _ in range(200)))
        assert len(set(ids)) == 200
        first = min(ids, key=int)
        assert len(await store.after("session", "a", first) or ()) == 10


async def test_silent_sessions_expire(redis: RedisServer) -> None:
    """All data of a session expires, and old IDs are not assigned again."""
    async with store_at(redis, prefix="silent:", idle_seconds=0.05) as store:
        before = await store.append("session", "a", b"1")
        async with Redis.from_url(redis.url) as client, asyncio.timeout(20):
            keys = [key async for key in client.scan_iter("silent:*")]
            assert len(keys) == 2
            while await client.exists(*keys):
                continue  # asking itself takes time
        after = await store.append("session", "a", b"2")
        assert int(after) > int(before)
        assert await store.after("session", "a", before) is None


async def test_an_outage() -> None:
    """While Redis is unavailable or hangs, the store reports it in time; it recovers when Redis is back."""
    with RedisServer() as redis:
        async with store_at(redis, timeout_seconds=0.2) as store:
            await store.append("session", "a", b"1")
            redis.hang()
            with pytest.raises(SessionStoreError, match="does not respond"):
                await store.append("session", "a", b"2")
            redis.go_on()
            redis.kill()
            with pytest.raises(SessionStoreError):
                await store.after("session", "a", "1")
            redis.start()
            event_id = await store.append("session", "a", b"3")
            assert await store.after("session", "a", event_id) == []
