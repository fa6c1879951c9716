"""What is made of the settings: rules, and the store that keeps count."""

from axolotl_core.errors import ConfigurationError
from axolotl_core.quota import IQuotaStore, QuotaRule
from axolotl_server.layers.quota import QuotaLayer
from axolotl_server.quotas.outage import OutageGuard
from axolotl_server.quotas.settings import QuotaSettings
from axolotl_server.stores.memory_quotas import MemoryQuotaStore

__all__ = ["quota_layer", "quota_rules", "quota_store"]


def quota_rules(settings: QuotaSettings) -> tuple[QuotaRule, ...]:
    """Make the rules.

    Raises:
        ConfigurationError: if some cannot be applied, with all of them at once.
    """
    rules = tuple(said.rule(name) for name, said in settings.rules.items())
    findings = [f"Setting quotas.rules.{rule.name}: {fault}" for rule in rules if (fault := rule.limit.fault())]
    if findings:
        raise ConfigurationError(*findings)
    return rules


def quota_store(settings: QuotaSettings, given: IQuotaStore | None = None) -> IQuotaStore:
    """Make the store: the one that the container gives, else Redis where the settings name one, else memory.

    Raises:
        ConfigurationError: if Redis is wanted but cannot be used.
    """
    store = _redis(settings) if given is None else given
    if store is None:
        return MemoryQuotaStore(settings.max_entries)
    return OutageGuard(
        store,
        settings.on_store_failure,
        timeout_seconds=settings.store_timeout_seconds,
        retry_seconds=settings.store_retry_seconds,
    )


def quota_layer(settings: QuotaSettings, store: IQuotaStore) -> QuotaLayer:
    """Make the layer.

    Raises:
        ConfigurationError: if a rule cannot be applied.
    """
    return QuotaLayer(store, quota_rules(settings))


def _redis(settings: QuotaSettings) -> IQuotaStore | None:
    if settings.redis_url is None:
        return None
    try:
        from axolotl_server.stores.redis_quotas import RedisQuotaStore
    except ImportError:
        raise ConfigurationError(
            "Setting quotas.redis_url needs the extra redis: pip install 'axolotl-mcp[redis]'"
        ) from None
    return RedisQuotaStore(
        settings.redis_url.get_secret_value(),
        prefix=settings.redis_prefix,
        timeout_seconds=settings.store_timeout_seconds,
        max_connections=settings.redis_connections,
    )
