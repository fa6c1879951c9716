"""The session store in Redis, and messages between processes that share it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from axolotl_core.protocol.identity import Implementation
from axolotl_core.sessions import KnownSession, SessionChange, SessionRecord, SessionStoreError
from axolotl_server.stores.redis_sessions import RedisSessionStore
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.stores.redis_server import RedisServer, redis_client

pytestmark = pytest.mark.slow

RECORD = SessionRecord("owner", "2025-11-25", Implementation("client", "1"), {"elicitation": {}})


class Process:
    """A process that shares sessions: its store and the messages it has received."""

    def __init__(self, store: RedisSessionStore) -> None:
        self.store = store
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()
        self.reconnected = asyncio.Event()
        store.open(self.heard.put_nowait, self.reconnected.set)

    async def hear(self) -> bytes:
        """Wait for the next message."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.heard.get()


@asynccontextmanager
async def process(redis: RedisServer, prefix: str, **options: Any) -> AsyncIterator[Process]:
    """Start sharing sessions."""
    usual = {"maximum": 100, "idle_seconds": 600.0, "timeout_seconds": PATIENCE_SECONDS}
    async with redis_client(redis.url, prefix=prefix) as client:
        store = RedisSessionStore(client, **{**usual, **options})
        try:
            yield Process(store)
        finally:
            await store.close()


@asynccontextmanager
async def two(redis: RedisServer, **options: Any) -> AsyncIterator[tuple[RedisSessionStore, RedisSessionStore]]:
    """Start sharing sessions in two processes."""
    prefix = options.pop("prefix", redis.new_prefix())
    async with process(redis, prefix, **options) as one, process(redis, prefix, **options) as other:
        yield one.store, other.store


async def _hashes(redis: RedisServer, pattern: str = "idle:*") -> list[bytes]:
    async with Redis.from_url(redis.url) as client:
        return [key async for key in client.scan_iter(pattern) if await client.type(key) == b"hash"]


async def test_a_session_is_found_by_the_others(redis: RedisServer) -> None:
    """A process finds the full session of another process, but no state that it already has."""
    async with two(redis) as (one, other):
        assert await one.begin("s", RECORD)
        assert await other.find("s", 0) == KnownSession(1, RECORD)
        assert await other.find("s", 1) == KnownSession(1, None)
        assert await other.find("another", 0) is None


async def test_changes_are_seen_at_once(redis: RedisServer) -> None:
    """After a change, every process finds the new state with a new version."""
    async with two(redis) as (one, other):
        await one.begin("s", RECORD)
        assert await one.change("s", SessionChange(initialized=True, log_level="error")) == 2
        assert (
            await other.change("s", SessionChange(subscribed=frozenset({"a://1", "a://2"}), notification_stream="n"))
            == 3
        )
        assert await one.change("s", SessionChange(unsubscribed=frozenset({"a://1"}))) == 4
        expected = msgspec.structs.replace(
            RECORD, initialized=True, log_level="error", notification_stream="n", subscriptions=frozenset({"a://2"})
        )
        assert await other.find("s", 1) == KnownSession(4, expected)


async def test_an_end_is_seen_at_once(redis: RedisServer) -> None:
    """An ended session can no longer be found, changed or held, and leaves no data."""
    async with two(redis) as (one, other):
        await one.begin("s", RECORD)
        await other.find("s", 0)
        await other.end("s")
        assert await one.find("s", 1) is None
        assert await one.change("s", SessionChange(initialized=True)) is None
        assert await one.hold(["s"]) == frozenset()
        assert not await one.send("s", b"anybody?")
        assert await one.find("s", 0) is None


async def test_the_maximum_counts_all_processes(redis: RedisServer) -> None:
    """The maximum counts the sessions of all processes, and an ended session frees its place."""
    async with two(redis, maximum=2) as (one, other):
        assert [await one.begin("a", RECORD), await other.begin("b", RECORD)] == [True, True]
        assert not await one.begin("c", RECORD)
        assert await one.find("c", 0) is None
        await one.end("b")
        assert await other.begin("c", RECORD)


async def test_idle_sessions_end(redis: RedisServer) -> None:
    """A session lives as long as it is found or held at intervals, and frees its place when it ends."""
    async with two(redis, prefix="idle:", maximum=1, idle_seconds=0.3) as (one, other):
        await one.begin("s", RECORD)
        loop = asyncio.get_running_loop()
        until = loop.time() + 0.6
        while loop.time() < until:
            assert await other.find("s", 1) == KnownSession(1, None)
            assert await one.hold(["s", "another"]) == {"s"}
            assert not await one.begin("another", RECORD)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await one.begin("another", RECORD):
                pass
            while await other.hold(["another"]) and len(await _hashes(redis)) > 1:
                pass


async def test_messages_reach_the_other_holders(redis: RedisServer) -> None:
    """A message reaches every other process that holds the session, but not its sender."""
    async with process(redis, "m:") as one, process(redis, "m:") as other, process(redis, "m:") as stranger:
        await one.store.begin("s", RECORD)
        assert not await one.store.send("s", b"alone")
        await other.store.find("s", 0)
        assert await one.store.send("s", b"\x00\xff to the other")
        assert await other.store.send("s", b"to the one")
        await stranger.store.broadcast(b"to all")
        assert [await one.hear(), await one.hear()] == [b"to the one", b"to all"]
        assert [await other.hear(), await other.hear()] == [b"\x00\xff to the other", b"to all"]
        assert stranger.heard.empty()


async def test_a_process_that_died_is_not_waited_for(redis: RedisServer) -> None:
    """A holder counts as gone after the first message that it missed."""
    async with process(redis, "d:") as one:
        async with process(redis, "d:") as other:
            await one.store.begin("s", RECORD)
            await other.store.find("s", 0)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await one.store.send("s", b"hello?", wait=True):  # until Redis notices that it is gone
                pass
        [key] = await _hashes(redis, "d:*")
        async with Redis.from_url(redis.url) as client:
            fields: Any = await client.hkeys(key)
            assert len([field for field in fields if field.startswith(b"h:")]) == 1


async def test_keys_contain_no_session_id(redis: RedisServer) -> None:
    """The keys in Redis do not reveal session IDs."""
    async with process(redis, "hidden:") as one, Redis.from_url(redis.url) as client:
        await one.store.begin("5ec2e7", RECORD)
        names = [key async for key in client.scan_iter("hidden:*")]
        names += await client.zrange("hidden:session:alive", 0, -1)
        assert len(names) == 3
        assert not [name for name in names if b"5ec2e7" in name]


async def test_an_outage() -> None:
    """While Redis is unavailable, every operation fails in time; afterwards all works again and the gap is reported."""
    with RedisServer() as redis:
        async with process(redis, "o:", timeout_seconds=0.3) as one:
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
            async with process(redis, "o:") as other:
                await other.store.find("s", 0)
                assert await other.store.send("s", b"again")
            assert await one.hear() == b"again"


async def test_a_redis_that_hangs() -> None:
    """Waiting for a Redis that does not answer ends at the configured timeout."""
    with RedisServer() as redis:
        async with process(redis, "h:", timeout_seconds=0.2) as one:
            await one.store.begin("s", RECORD)
            redis.hang()
            with pytest.raises(SessionStoreError, match="does not respond"):
                await one.store.find("s", 1)
            redis.go_on()
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await one.store.find("s", 1) == KnownSession(1, None)


_CHANGES = st.builds(
    SessionChange,
    initialized=st.none() | st.booleans(),
    log_level=st.none() | st.sampled_from(["debug", "error"]),
    notification_stream=st.none() | st.sampled_from(["x", "y"]),
    subscribed=st.frozensets(st.text(max_size=5), max_size=3),
    unsubscribed=st.frozensets(st.text(max_size=5), max_size=3),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.booleans(), _CHANGES), max_size=8))
async def test_any_changes(redis: RedisServer, changes: list[tuple[bool, SessionChange]]) -> None:
    """After any changes by two processes, both find the combined state."""
    async with two(redis) as (one, other):
        await one.begin("s", RECORD)
        expected = RECORD
        for mine, change in changes:
            await (one if mine else other).change("s", change)
            expected = msgspec.structs.replace(
                expected,
                initialized=expected.initialized if change.initialized is None else change.initialized,
                log_level=change.log_level or expected.log_level,
                notification_stream=change.notification_stream or expected.notification_stream,
                subscriptions=(expected.subscriptions | change.subscribed) - change.unsubscribed,
            )
        assert await one.find("s", 0) == await other.find("s", 0) == KnownSession(1 + len(changes), expected)
