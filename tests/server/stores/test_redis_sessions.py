"""The session store in Redis: keys, dead processes and outages."""

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from axolotl_core.sessions import KnownSession, SessionChange, SessionStoreError
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.stores.redis_server import RedisServer
from tests.support.stores.session_stores import RECORD, Place

pytestmark = pytest.mark.slow


async def _hashes(redis: RedisServer, place: Place) -> list[bytes]:
    async with Redis.from_url(redis.url) as client:
        return [key async for key in client.scan_iter(f"{place.prefix}*") if await client.type(key) == b"hash"]


async def test_idle_sessions_leave_no_data(redis: RedisServer) -> None:
    """The data of a session expires with it."""
    place = Place(redis)
    async with place.process(idle_seconds=0.05) as one:
        await one.store.begin("s", RECORD)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await _hashes(redis, place):
                continue  # asking itself takes time


async def test_a_process_that_died_is_not_waited_for(redis: RedisServer) -> None:
    """A holder counts as gone after the first message that it missed."""
    place = Place(redis)
    async with place.process() as one:
        async with place.process() as other:
            await one.store.begin("s", RECORD)
            await other.store.find("s", 0)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await one.store.send("s", b"hello?", wait=True):  # until Redis notices that it is gone
                pass
        [key] = await _hashes(redis, place)
        async with Redis.from_url(redis.url) as client:
            fields: Any = await client.hkeys(key)
            assert len([field for field in fields if field.startswith(b"h:")]) == 1


async def test_keys_contain_no_session_id(redis: RedisServer) -> None:
    """The keys in Redis do not reveal session IDs."""
    place = Place(redis)
    async with place.process() as one, Redis.from_url(redis.url) as client:
        await one.store.begin("5ec2e7", RECORD)
        names = [key async for key in client.scan_iter(f"{place.prefix}*")]
        names += await client.zrange(f"{place.prefix}session:alive", 0, -1)
        assert len(names) == 3
        assert not [name for name in names if b"5ec2e7" in name]


async def test_an_outage() -> None:
    """While Redis is unavailable, every operation fails in time; afterwards all works again and the gap is reported."""
    with RedisServer() as redis:
        place = Place(redis)
        async with place.process(timeout_seconds=0.3) as one:
            await one.store.begin("s", RECORD)
            redis.kill()
            for question in (
                one.store.find("s", 1),
                one.store.begin("t", RECORD),
                one.store.change("s", SessionChange(initialized=True)),
                one.store.hold(["s"]),
                one.store.send("s", b"?"),
                one.store.broadcast(b"?"),
                one.store.end("s"),
            ):
                with pytest.raises(SessionStoreError):
                    await question
            redis.start()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await one.reconnected.wait()
            assert await one.store.begin("s", RECORD)
            async with place.process() as other:
                await other.store.find("s", 0)
                assert await other.store.send("s", b"again")
            assert await one.hear() == b"again"


async def test_a_redis_that_hangs() -> None:
    """Waiting for a Redis that does not answer ends at the configured timeout."""
    with RedisServer() as redis:
        async with Place(redis).process(timeout_seconds=0.2) as one:
            await one.store.begin("s", RECORD)
            redis.hang()
            with pytest.raises(SessionStoreError, match="does not respond"):
                await one.store.find("s", 1)
            redis.go_on()
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await one.store.find("s", 1) == KnownSession(1, None)
