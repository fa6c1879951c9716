"""Hearing what is published in Redis, for as long as a process lives."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from hashlib import sha1
from typing import Any, Final
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import NoScriptError, RedisError

from axolotl_core.errors import ConfigurationError


class RedisUnavailable(Exception):
    """Redis is away, too slow, or answers with an error; the text names its address and no secret."""


class RedisClient:
    """Speaks to one Redis; it connects when it is first used."""

    def __init__(self, url: str, setting: str, *, timeout_seconds: float, max_connections: int) -> None:
        """Say which Redis, and which setting says so.

        Raises:
            ConfigurationError: if the URL is none of a Redis.
        """
        self._address = _without_secrets(url)
        self._timeout_seconds = timeout_seconds
        try:
            pool = BlockingConnectionPool.from_url(
                url,
                max_connections=max_connections,
                # One deadline around everything instead: those of the client can swallow a cancellation.
                timeout=None,
                socket_timeout=None,
                socket_connect_timeout=None,
                # A connection that Redis closed while nobody used it is noticed at the next use: try another at once.
                retry=Retry(NoBackoff(), 1, supported_errors=(LostConnection,)),
                encoding_errors="surrogatepass",
                protocol=2,
            )
        except ValueError:
            problem = f"{setting} is no address of a Redis: write redis://, rediss:// or unix://"
            raise ConfigurationError(problem) from None
        self.commands: Redis = Redis.from_pool(pool)
        """What makes questions; they are asked by `ask`."""

    async def ask(self, question: Awaitable[Any]) -> Any:
        """Wait for an answer, but not long.

        Raises:
            RedisUnavailable: if there is none.
        """
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await question
        except TimeoutError:
            raise RedisUnavailable(f"Redis at {self._address} does not answer") from None
        except (RedisError, OSError) as error:
            raise RedisUnavailable(f"Redis at {self._address}: {type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """Close all connections."""
        await self.commands.aclose()


def _without_secrets(url: str) -> str:
    """Leave out of a URL what nobody may read in a log: user, password and options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class RedisScript:
    """Does several things in one step, in which nothing can come between."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._digest = sha1(text.encode(), usedforsecurity=False).hexdigest()

    async def run(self, commands: Redis, keys: Sequence[str], *arguments: str | bytes | int) -> Any:
        """Run it; what Redis answers is given as it is."""
        try:
            return await commands.evalsha(self._digest, len(keys), *keys, *arguments)
        except NoScriptError:
            return await commands.eval(self._text, len(keys), *keys, *arguments)


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

    def open(self, receive: Callable[[bytes], object], reconnected: Callable[[], object]) -> None:
        """Begin to hear; `reconnected` is called each time that there was a gap."""
        self._hearing = asyncio.get_running_loop().create_task(self._keep_receiving(receive, reconnected))

    async def joined(self) -> None:
        """Wait until everything that is said from now on will be heard."""
        await self._joined.wait()

    async def close(self) -> None:
        """Hear no more."""
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.wait((self._hearing,))
        await self._pool.aclose()

    async def _keep_receiving(self, receive: Callable[[bytes], object], reconnected: Callable[[], object]) -> None:
        pause, before = _FIRST_PAUSE_SECONDS, False
        while True:
            try:
                async with aclosing(Redis(connection_pool=self._pool).pubsub()) as pubsub:
                    await self._join(pubsub)
                    if before:
                        _log.warning("Redis is back: sessions are shared again")
                        reconnected()
                    pause, before = _FIRST_PAUSE_SECONDS, True
                    await _receive(pubsub, receive)
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


async def _receive(pubsub: PubSub, receive: Callable[[bytes], object]) -> None:
    """Hear until the connection is lost; one on which nothing comes is asked for a sign of life."""
    asked = False
    while True:
        said: dict[str, Any] | None = await pubsub.get_message(timeout=_PATIENCE_SECONDS)
        if said is not None:
            asked = False
            if said["type"] == "message":
                receive(said["data"])
        elif asked:
            raise TimeoutError
        else:
            asked = True
            await pubsub.ping()
