"""The store of results that a server's settings and roles ask for."""

from axolotl_core.errors import ConfigurationError
from axolotl_core.policies.tool_rules import IResultStore
from axolotl_server.settings.calls import IdempotencySettings
from axolotl_server.stores.memory_results import MemoryResultStore


def result_store(settings: IdempotencySettings, given: IResultStore | None = None) -> IResultStore:
    """Make the store: the one that the container gives, else Redis where the settings name one, else memory.

    Raises:
        ConfigurationError: if Redis is wanted but cannot be used.
    """
    if given is not None:
        return given
    if settings.redis_url is None:
        return MemoryResultStore(settings.max_entries, settings.max_bytes)
    try:
        from axolotl_server.stores.redis_results import RedisResultStore
    except ImportError:
        raise ConfigurationError(
            "Setting idempotency.redis_url needs the extra redis: pip install 'axolotl-mcp[redis]'"
        ) from None
    return RedisResultStore(
        settings.redis_url.get_secret_value(),
        prefix=settings.redis_prefix,
        claim_seconds=settings.claim_seconds,
        timeout_seconds=settings.store_timeout_seconds,
        max_connections=settings.redis_connections,
    )
