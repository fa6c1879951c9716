"""Both event stores, created empty."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from axolotl_core.sessions import IEventStore
from axolotl_server.stores.memory_events import MemoryEventStore
from axolotl_server.stores.redis_events import RedisEventStore
from tests.support.stores.redis_server import RedisServer


@asynccontextmanager
async def opened(
    redis: RedisServer | None, max_events: int = 100, max_bytes: int = 10_000
) -> AsyncIterator[IEventStore]:
    """Create a store in Redis or in memory."""
    if redis is None:
        yield MemoryEventStore(max_events, max_bytes)
        return
    # A long timeout, for busy machines.
    store = RedisEventStore(
        redis.url,
        max_events=max_events,
        max_bytes=max_bytes,
        idle_seconds=600.0,
        prefix=redis.new_prefix(),
        timeout_seconds=20.0,
    )
    try:
        yield store
    finally:
        await store.close()
