"""Assembly of the Redis client and of the result store."""

from typing import TYPE_CHECKING, Final

from axolotl_core.errors import ConfigurationError
from axolotl_core.policies.tool_rules import IResultStore
from axolotl_server.settings.calls import IdempotencySettings
from axolotl_server.settings.server import RedisSettings
from axolotl_server.stores.memory_results import MemoryResultStore

if TYPE_CHECKING:
    from axolotl_server.stores.redis_client import RedisClient


MAX_RESULTS: Final = 10_000
"""How many results of idempotent calls are kept in memory. The oldest are dropped first."""
_MAX_CONNECTIONS: Final = 20
"""The maximum number of connections to Redis per process."""


def load_redis(settings: RedisSettings) -> None:
    """Import the Redis library if the settings need it: it takes a while, so do it before an event loop runs."""
    if settings.url is None:
        return
    try:
        import axolotl_server.stores.redis_client  # noqa: F401
    except ImportError:
        raise ConfigurationError.missing_extra("Setting redis.url", "redis") from None


def make_redis(settings: RedisSettings) -> "RedisClient | None":
    """Make the client that all stores share."""
    if settings.url is None:
        return None
    load_redis(settings)
    from axolotl_server.stores.redis_client import RedisClient

    url = settings.url.get_secret_value()
    return RedisClient(url, prefix=settings.prefix, max_connections=_MAX_CONNECTIONS)


def make_result_store(
    settings: IdempotencySettings, redis: "RedisClient | None", given: IResultStore | None = None
) -> IResultStore:
    """Choose the store of the container, or Redis, or memory."""
    if given is not None:
        return given
    if redis is None:
        return MemoryResultStore(MAX_RESULTS, settings.max_bytes)
    from axolotl_server.stores.redis_results import RedisResultStore

    return RedisResultStore(redis)
