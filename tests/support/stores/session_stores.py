"""Session stores that processes share, in a directory or in Redis."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

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
        self.expired: list[str] = []
        store.open(self.heard.put_nowait, self.reconnected.set, self.expired.extend)

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

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a server that shares sessions here."""
        if isinstance(self._where, RedisServer):
            return {"redis": {"url": self._where.url, "prefix": self.prefix}}
        return {"sessions": {"directory": str(self._where)}}

    async def pass_time(self, seconds: float) -> None:
        """Make all sessions older, instead of waiting."""
        if isinstance(self._where, RedisServer):
            async with Redis.from_url(self._where.url) as redis:
                for key in [key async for key in redis.scan_iter(f"{self.prefix}session:*")]:
                    if await redis.type(key) == b"zset":
                        members: Any = await redis.zrange(key, 0, -1)
                        for member in members:
                            await redis.zincrby(key, -1000 * seconds, member)
                    await redis.pexpire(key, await redis.pttl(key) - round(1000 * seconds))
        else:
            with closing(sqlite3.connect(self._where / "sessions.sqlite")) as database, database:
                database.execute("update sessions set used = used - ?", (seconds,))

    @asynccontextmanager
    async def two(self, **limits: Any) -> AsyncIterator[tuple[ISessionStore, ISessionStore]]:
        """Start sharing sessions in two processes."""
        async with self.process(**limits) as one, self.process(**limits) as other:
            yield one.store, other.store
