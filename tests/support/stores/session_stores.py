"""Session stores that processes share, in a directory or in Redis."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from axolotl_core.sessions import ISessionStore, SessionRecord
from axolotl_server.stores.redis_sessions import RedisSessionStore
from axolotl_server.stores.sqlite_sessions import SqliteSessionStore
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.stores.redis_server import RedisServer, redis_client

RECORD = SessionRecord("owner", "2025-11-25", b'{"name":"client","version":"1"}', b'{"elicitation":{}}')


class Process:
    """A process that shares sessions: its store and the messages it has received."""

    def __init__(self, store: ISessionStore) -> None:
        self.store = store
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()
        self.reconnected = asyncio.Event()
        store.open(self.heard.put_nowait, self.reconnected.set)

    async def hear(self) -> bytes:
        """Wait for the next message."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.heard.get()


class Place:
    """Where sessions are shared: a directory, or a Redis with a prefix."""

    def __init__(self, where: Path | RedisServer) -> None:
        self._where = where
        self.prefix = where.new_prefix() if isinstance(where, RedisServer) else ""

    @asynccontextmanager
    async def process(self, *, timeout_seconds: float = PATIENCE_SECONDS, **limits: Any) -> AsyncIterator[Process]:
        """Start sharing sessions."""
        limits = {"maximum": 100, "idle_seconds": 600.0, **limits}
        async with AsyncExitStack() as stack:
            store: ISessionStore
            if isinstance(self._where, RedisServer):
                client = await stack.enter_async_context(redis_client(self._where.url, prefix=self.prefix))
                store = RedisSessionStore(client, timeout_seconds=timeout_seconds, **limits)
            else:
                store = SqliteSessionStore(self._where, **limits)
            stack.push_async_callback(store.close)
            yield Process(store)

    @asynccontextmanager
    async def two(self, **limits: Any) -> AsyncIterator[tuple[ISessionStore, ISessionStore]]:
        """Start sharing sessions in two processes."""
        async with self.process(**limits) as one, self.process(**limits) as other:
            yield one.store, other.store
