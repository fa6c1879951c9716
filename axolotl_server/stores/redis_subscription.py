"""Hearing what is published in Redis, for as long as a process lives."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, Final

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

__all__ = ["RedisSubscription"]

_log = logging.getLogger("axolotl")

_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 5.0
"""How long nothing need be heard before Redis is asked whether it is there, and how long it may take to answer."""


class RedisSubscription:
    """Hears some channels on one connection, which is made anew whenever it is lost."""

    def __init__(self, url: str, channels: Sequence[str]) -> None:
        # A lost connection shall be noticed, not mended in silence: what was said meanwhile is lost.
        self._pool = ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), protocol=2, socket_timeout=None)
        self._channels = channels
        self._joined = asyncio.Event()
        self._hearing: asyncio.Task[None] | None = None

    def open(self, hear: Callable[[bytes], object], rejoined: Callable[[], object]) -> None:
        """Begin to hear; `rejoined` is called each time that there was a gap."""
        self._hearing = asyncio.get_running_loop().create_task(self._keep_hearing(hear, rejoined))

    async def joined(self) -> None:
        """Wait until everything that is said from now on will be heard."""
        await self._joined.wait()

    async def close(self) -> None:
        """Hear no more."""
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.wait((self._hearing,))
        await self._pool.aclose()

    async def _keep_hearing(self, hear: Callable[[bytes], object], rejoined: Callable[[], object]) -> None:
        pause, before = _FIRST_PAUSE_SECONDS, False
        while True:
            try:
                async with aclosing(Redis(connection_pool=self._pool).pubsub()) as pubsub:
                    await self._join(pubsub)
                    if before:
                        _log.warning("Redis is back: sessions are shared again")
                        rejoined()
                    pause, before = _FIRST_PAUSE_SECONDS, True
                    await _hear(pubsub, hear)
            except (RedisError, OSError) as error:  # a TimeoutError is one
                if self._joined.is_set():
                    _log.warning("Redis is away (%s): sessions cannot be shared", type(error).__name__)
                self._joined.clear()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _join(self, pubsub: PubSub) -> None:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await pubsub.subscribe(*self._channels)
            for _ in self._channels:
                await pubsub.get_message(timeout=None)
        self._joined.set()


async def _hear(pubsub: PubSub, hear: Callable[[bytes], object]) -> None:
    """Hear until the connection is lost; one on which nothing comes is asked for a sign of life."""
    asked = False
    while True:
        said: dict[str, Any] | None = await pubsub.get_message(timeout=_PATIENCE_SECONDS)
        if said is not None:
            asked = False
            if said["type"] == "message":
                hear(said["data"])
        elif asked:
            raise TimeoutError
        else:
            asked = True
            await pubsub.ping()
