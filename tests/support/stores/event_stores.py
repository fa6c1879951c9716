"""Both event stores, created empty."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from axolotl_core.sessions import IEventStore
from axolotl_server.stores.memory_events import MemoryEventStore
from axolotl_server.stores.redis_events import RedisEventStore
from tests.support.stores.redis_server import RedisServer, redis_client


@asynccontextmanager
async def opened(
    redis: RedisServer | None, max_events: int = 100, max_bytes: int = 10_000
) -> AsyncIterator[IEventStore]:
    """Create a store in Redis or in memory."""
    if redis is None:
        yield MemoryEventStore(max_events, max_bytes)
        return
    # A long timeout, for busy machines.
    async with redis_client(redis.url, prefix=redis.new_prefix()) as client:
        yield RedisEventStore(
            client, max_events=max_events, max_bytes=max_bytes, idle_seconds=600.0, timeout_seconds=20.0
        )
