"""A client of Redis whose every question is asked under one deadline."""

import asyncio
from collections.abc import Awaitable
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError

from axolotl_core.errors import ConfigurationError

__all__ = ["RedisClient", "RedisUnavailable"]


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
