"""What is made of the settings: rules, and the store that keeps count."""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal

from axolotl_core.errors import ConfigurationError, Refused
from axolotl_core.policies.quota import Claim, IQuotaStore, QuotaRefusal, QuotaRule, QuotaStoreError
from axolotl_server.layers.quota import QuotaLayer
from axolotl_server.lifecycle.outage_log import OutageLog
from axolotl_server.settings.policies import QuotaSettings
from axolotl_server.stores.memory_quotas import MemoryQuotaStore

if TYPE_CHECKING:
    from axolotl_server.stores.redis_client import RedisClient

_EFFECTS: Final = {"open": "calls let through unchecked", "closed": "calls refused"}


class OutageTolerantStore(IQuotaStore):
    """Bounds how long a store may take, and lets calls pass or refuses them while it is away.

    A store that failed is left alone for a while, so that its absence costs calls no time; then one call tries it.
    """

    def __init__(
        self,
        store: IQuotaStore,
        on_failure: Literal["open", "closed"],
        *,
        timeout_seconds: float = 0.25,
        retry_seconds: float = 1.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._on_failure: Literal["open", "closed"] = on_failure
        self._timeout_seconds = timeout_seconds
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._try_at: float | None = None
        """When the store may be tried again; None while it works."""
        self._problem: tuple[str, Exception | None] = "", None
        """The last failure, and the error to show if it is a bug."""
        self._outages = OutageLog("The quota store", _EFFECTS[on_failure], clock=clock)

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        """Take all or nothing, or do without the store.

        Raises:
            Refused: if the store is away and calls are refused then.
        """
        if self._try_at is not None:
            now = self._clock()
            if now < self._try_at:
                self._do_without()
                return None
            self._try_at = now + self._retry_seconds  # the others do without until this one knows more
        try:
            async with asyncio.timeout(self._timeout_seconds):
                refusal = await self._store.take(claims)
        except Exception as error:
            self._try_at = self._clock() + self._retry_seconds
            self._problem = _describe(error)
            self._do_without()
            return None
        if self._try_at is not None:
            self._try_at = None
            self._outages.recovered()
        return refusal

    async def close(self) -> None:
        """Let go of the store."""
        await self._store.close()

    def _do_without(self) -> None:
        problem, bug = self._problem
        self._outages.failed(problem, bug=bug)
        if self._on_failure == "closed":
            milliseconds = round(self._retry_seconds * 1000)
            raise Refused(
                "The limits of this server cannot be checked for now; try again in a moment",
                meta={"reason": "quota_unavailable", "retryAfterMs": milliseconds},
            )


def _describe(error: Exception) -> tuple[str, Exception | None]:
    """Describe a failure; an error that no store should raise is a bug, and logged with its traceback."""
    if isinstance(error, QuotaStoreError):
        return str(error), None
    if isinstance(error, TimeoutError):
        return "no answer in time", None
    return type(error).__name__, error


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


def quota_store(settings: QuotaSettings, redis: "RedisClient | None", given: IQuotaStore | None = None) -> IQuotaStore:
    """Choose the store of the container, or Redis, or memory."""
    store = given
    if store is None and redis is not None:
        from axolotl_server.stores.redis_quotas import RedisQuotaStore

        store = RedisQuotaStore(redis, timeout_seconds=settings.store_timeout_seconds)
    if store is None:
        return MemoryQuotaStore(settings.max_entries)
    return OutageTolerantStore(
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
