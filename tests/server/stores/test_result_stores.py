"""Result stores: the same behavior in memory and in Redis."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from axolotl_core.policies.tool_rules import IResultStore
from axolotl_server.stores.results import MemoryResultStore, RedisResultStore
from tests.support.stores.redis_server import redis_client


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[IResultStore]:
    if request.param == "memory":
        yield MemoryResultStore(100, 10_000)
        return
    async with redis_client(request.getfixturevalue("redis").url, prefix=f"{request.node.name}:") as client:
        yield RedisResultStore(client)


async def test_one_holder_at_a_time(store: IResultStore) -> None:
    """Of many concurrent claims one succeeds and can be repeated; after its release another one succeeds."""
    claims = await asyncio.gather(*(store.claim("k", f"holder {number}") for number in range(20)))
    assert sorted(map(str, claims)) == ["mine"] + ["theirs"] * 19
    winner = f"holder {claims.index('mine')}"
    assert await store.claim("k", winner) == "mine"
    assert await store.renew("k", winner)
    await store.release("k", "somebody else")
    assert await store.claim("k", "late") == "theirs"
    await store.release("k", winner)
    assert await store.claim("k", "late") == "mine"


async def test_a_result_replaces_the_claim(store: IResultStore) -> None:
    """A stored result replaces the claim and is returned to every caller until it expires."""
    record = bytes(range(256))
    assert await store.claim("k", "a") == "mine"
    assert await store.keep("k", "a", record, 60)
    assert [await store.claim("k", holder) for holder in "abc"] == [record] * 3
    await store.release("k", "a")
    assert await store.claim("k", "b") == record
    assert not await store.renew("k", "a")
    assert await store.claim("other", "b") == "mine"


async def test_a_claim_that_was_lost(store: IResultStore) -> None:
    """A holder that has lost its claim does not overwrite the claim or result of the new holder."""
    assert await store.claim("k", "b") == "mine"
    assert not await store.renew("k", "a")
    assert not await store.keep("k", "a", b"of a", 60)
    assert await store.claim("k", "c") == "theirs"
    assert await store.keep("k", "b", b"of b", 60)
    assert await store.claim("k", "a") == b"of b"


async def test_an_expired_claim(store: IResultStore) -> None:
    """A result is stored even if the claim has expired, unless another holder has the key."""
    assert await store.keep("k", "a", b"of a", 60)
    assert await store.claim("k", "b") == b"of a"


class Clock:
    now = 0.0


async def test_memory_drops_expired_results() -> None:
    """An expired result is dropped, and its key can be claimed again."""
    store = MemoryResultStore(100, 10_000, lambda: Clock.now)
    await store.keep("k", "a", b"x", 60)
    Clock.now += 60
    assert await store.claim("k", "b") == "mine"
    assert (len(store), store.bytes) == (0, 0)


async def test_memory_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """Beyond the limits, in number or size, expired results are dropped first, then the oldest."""
    store = MemoryResultStore(10, 1000, lambda: Clock.now)
    for number in range(30):
        await store.keep(f"{number:02}", "a", b"x", 60)
    assert (len(store), store.bytes, store.evicted) == (10, 30, 20)
    assert caplog.text.count("evicted before they expire") == 1
    assert await store.claim("29", "b") == b"x"
    await store.keep("31", "a", b"x" * 990, 60)
    assert len(store) == 3
    assert store.bytes <= 1000
    evicted = store.evicted
    Clock.now += 60
    await store.keep("32", "a", b"x" * 990, 60)
    assert (len(store), store.evicted) == (1, evicted)


async def test_an_oversized_result_displaces_nothing() -> None:
    """A result larger than the whole store does not displace other results."""
    store = MemoryResultStore(10, 1000)
    await store.keep("small", "a", b"x", 60)
    await store.keep("giant", "a", b"x" * 2000, 60)
    assert (len(store), store.evicted) == (1, 1)
    assert await store.claim("giant", "a") == "mine"


async def test_a_replaced_result_is_counted_once() -> None:
    """A result that replaces another is counted once."""
    store = MemoryResultStore(10, 1000)
    for _ in range(5):
        await store.keep("k", "a", b"xyz", 60)
    assert (len(store), store.bytes) == (1, 4)
