"""All event stores, created empty."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TypeAlias

from axolotl_core.sessions import IEventStore
from axolotl_server.stores.memory_events import MemoryEventStore
from axolotl_server.stores.redis_events import RedisEventStore
from axolotl_server.stores.sqlite_events import SqliteEventStore
from tests.support.stores.redis_server import RedisServer, redis_client

Place: TypeAlias = RedisServer | Path | None
_names = count()


@asynccontextmanager
async def opened(place: Place, max_events: int = 100, max_bytes: int = 10_000) -> AsyncIterator[IEventStore]:
    """Create a store in Redis, in a directory, or in memory if the place is None."""
    if place is None:
        yield MemoryEventStore(max_events, max_bytes)
    elif isinstance(place, Path):
        limits = {"max_events": max_events, "max_bytes": max_bytes, "max_file_bytes": 10_000_000}
        store = SqliteEventStore(place / f"events-{next(_names)}", **limits)
        yield store
        await store.close()
    else:
        # A long timeout, for busy machines.
        async with redis_client(place.url, prefix=place.new_prefix()) as client:
            yield RedisEventStore(
                client, max_events=max_events, max_bytes=max_bytes, idle_seconds=600.0, timeout_seconds=20.0
            )
