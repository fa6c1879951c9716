"""Both quota stores, with a manual clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from axolotl_core.policies.quota import IQuotaStore, QuotaRefusal
from axolotl_server.stores.quotas import MemoryQuotaStore, RedisQuotaStore
from tests.support.core.quota_model import START, Wanted, claims_of
from tests.support.stores.redis_server import RedisServer, redis_client


class Clock:
    """A manual clock that counts microseconds and returns nanoseconds."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now * 1000


class Till:
    """A store and its clock."""

    def __init__(self, store: IQuotaStore, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    async def take(self, *wanted: Wanted) -> QuotaRefusal | None:
        """Take the costs of a call."""
        return await self.store.take(claims_of(wanted))

    async def takes(self, *wanted: Wanted) -> bool:
        """Return whether a call is allowed."""
        return await self.take(*wanted) is None


@asynccontextmanager
async def opened(redis: RedisServer | None) -> AsyncIterator[Till]:
    """Create an empty store in Redis or in memory."""
    clock = Clock()
    if redis is None:
        yield Till(MemoryQuotaStore(1000, clock), clock)
        return
    # A long timeout, for busy machines.
    async with redis_client(redis.url, prefix=redis.new_prefix()) as client:
        yield Till(RedisQuotaStore(client, timeout_seconds=20.0, clock=clock), clock)
