"""A client for Redis, and subscriptions to its channels."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError

from axolotl_core.errors import AxolotlError, ConfigurationError
from axolotl_server.urls import without_secrets

_log: Final = logging.getLogger("axolotl")

_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 1.0
_SILENCE_SECONDS: Final = 5.0
"""How long a subscription may be silent before Redis gets a ping, and how long Redis may take to respond."""


class RedisClient:
    """The connections of a process to Redis; they are opened on first use."""

    def __init__(self, url: str, *, prefix: str = "axolotl:", max_connections: int = 20) -> None:
        self._url = url
        self._address = without_secrets(url)
        self.prefix = prefix
        """The beginning of all keys and channels."""
        try:
            pool = BlockingConnectionPool.from_url(
                url,
                max_connections=max_connections,
                # `within` limits the whole command instead: the timeouts of the library can swallow a cancellation.
                timeout=None,
                socket_timeout=None,
                socket_connect_timeout=None,
                # Redis may have closed an idle connection, which is noticed on next use: try another one at once.
                retry=Retry(NoBackoff(), 1, supported_errors=(LostConnection,)),
                encoding_errors="surrogatepass",
                protocol=2,
            )
        except ValueError:
            raise ConfigurationError(
                "Setting redis.url is not the URL of a Redis server: it has to begin with redis://, rediss:// or unix://"
            ) from None
        self.commands: Redis = Redis.from_pool(pool)
        """The commands of Redis; await them with `within`."""
        self.script = self.commands.register_script
        """Registers a Lua script, which Redis runs atomically; it is uploaded once."""

    async def within(self, seconds: float, error: type[AxolotlError], reply: Awaitable[Any]) -> Any:
        """Wait for a reply; raises the error, without any secret in its text, if Redis fails or takes too long."""
        try:
            async with asyncio.timeout(seconds):
                return await reply
        except TimeoutError:
            raise error(f"Redis at {self._address} does not respond") from None
        except (RedisError, OSError) as cause:
            raise error(f"Redis at {self._address}: {type(cause).__name__}: {cause}") from cause

    async def ping(self) -> None:
        """Check that Redis responds; the caller limits the time."""
        await self.commands.ping()

    def subscription(self, *channels: str) -> "RedisSubscription":
        """Make a subscription with a connection of its own."""
        # A lost connection must be noticed, not restored silently: messages may have been missed.
        pool = ConnectionPool.from_url(self._url, retry=Retry(NoBackoff(), 0), protocol=2, socket_timeout=None)
        return RedisSubscription(pool, channels)

    async def close(self) -> None:
        """Close all connections."""
        await self.commands.aclose()


class RedisSubscription:
    """Receives the messages of some channels, and reconnects whenever the connection is lost."""

    def __init__(self, pool: ConnectionPool, channels: Sequence[str]) -> None:
        self._pool = pool
        self._channels = channels
        self._subscribed = asyncio.Event()
        self._receiving: asyncio.Task[None] | None = None

    def open(self, receive: Callable[[bytes], object], reconnected: Callable[[], object]) -> None:
        """Begin to receive; `reconnected` is called after each gap."""
        self._receiving = asyncio.get_running_loop().create_task(self._keep_receiving(receive, reconnected))

    async def subscribed(self) -> None:
        """Wait until every message from now on will be received."""
        await self._subscribed.wait()

    async def close(self) -> None:
        """Stop receiving."""
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait((self._receiving,))
        await self._pool.aclose()

    async def _keep_receiving(self, receive: Callable[[bytes], object], reconnected: Callable[[], object]) -> None:
        pause, was_subscribed = _FIRST_PAUSE_SECONDS, False
        while True:
            try:
                async with aclosing(Redis(connection_pool=self._pool).pubsub()) as pubsub:
                    await self._subscribe(pubsub)
                    if was_subscribed:
                        _log.warning("Redis is available again: sessions are shared")
                        reconnected()
                    pause, was_subscribed = _FIRST_PAUSE_SECONDS, True
                    await _receive_all(pubsub, receive)
            except (RedisError, OSError) as error:  # TimeoutError is an OSError
                if self._subscribed.is_set():
                    _log.warning("Redis is unavailable (%s): sessions cannot be shared", type(error).__name__)
                self._subscribed.clear()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _subscribe(self, pubsub: PubSub) -> None:
        async with asyncio.timeout(_SILENCE_SECONDS):
            await pubsub.subscribe(*self._channels)
            for _ in self._channels:
                await pubsub.get_message(timeout=None)
        self._subscribed.set()


async def _receive_all(pubsub: PubSub, receive: Callable[[bytes], object]) -> None:
    """Receive until the connection is lost; a silent connection gets a ping."""
    pinged = False
    while True:
        message: dict[str, Any] | None = await pubsub.get_message(timeout=_SILENCE_SECONDS)
        if message is not None:
            pinged = False
            if message["type"] == "message":
                try:
                    receive(message["data"])
                except Exception:  # the messages that follow are still wanted
                    _log.exception("a message of another process cannot be handled")
        elif pinged:
            raise TimeoutError
        else:
            pinged = True
            await pubsub.ping()
