"""Quotas: their rules, their store, and its behavior during outages."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal

from axolotl_core.errors import ConfigurationError, InternalError, QuotaExceeded, Refused
from axolotl_core.policies.quota import Charge, Claim, IQuotaStore, QuotaRefusal, QuotaRule, QuotaStoreError
from axolotl_core.protocol.result_keys import error_data, own_meta
from axolotl_server.execution.outage_log import OutageLog
from axolotl_server.layers.quota import QuotaLayer, key_part, quota_exceeded
from axolotl_server.protocol.eras.era import Method
from axolotl_server.protocol.request import Request
from axolotl_server.settings.policies import QuotaSettings
from axolotl_server.stores.quotas import MemoryQuotaStore, RedisQuotaStore

if TYPE_CHECKING:
    from axolotl_server.stores.redis_client import RedisClient

MAX_ENTRIES: Final = 100_000
"""How many counts are kept in memory. Expired ones are dropped first."""
STORE_TIMEOUT_SECONDS: Final = 0.25
"""How long a call waits for the store."""
_STORE_RETRY_SECONDS: Final = 1.0
"""How long to wait before a failed store is tried again."""
_EFFECTS: Final = {"open": "calls let through unchecked", "closed": "calls refused"}


class OutageTolerantStore(IQuotaStore):
    """Limits the time of another store, and allows or refuses calls during its outages.

    After a failure, only one call per `retry_seconds` tries the store, so that an outage does not slow calls down.
    """

    def __init__(
        self,
        store: IQuotaStore,
        on_failure: Literal["open", "closed"],
        *,
        timeout_seconds: float = STORE_TIMEOUT_SECONDS,
        retry_seconds: float = _STORE_RETRY_SECONDS,
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
        self.outages = OutageLog("The quota store", _EFFECTS[on_failure], clock=clock)

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        """Take all claims or none; raises Refused if the store is unavailable and `on_failure` is `closed`."""
        if self._try_at is not None:
            now = self._clock()
            if now < self._try_at:
                self._skip_store()
                return None
            self._try_at = now + self._retry_seconds  # other calls do not wait for this one
        try:
            async with asyncio.timeout(self._timeout_seconds):
                refusal = await self._store.take(claims)
        except Exception as error:
            self._try_at = self._clock() + self._retry_seconds
            self._problem = _describe(error)
            self._skip_store()
            return None
        if self._try_at is not None:
            self._try_at = None
            self.outages.recovered()
        return refusal

    async def close(self) -> None:
        await self._store.close()

    def _skip_store(self) -> None:
        problem, bug = self._problem
        self.outages.failed(problem, bug=bug)
        if self._on_failure == "closed":
            milliseconds = round(self._retry_seconds * 1000)
            raise Refused(
                "The limits of this server cannot be checked now; try again in a moment",
                meta=own_meta(reason="quota_unavailable", retryAfterMs=milliseconds),
            )


def _describe(error: Exception) -> tuple[str, Exception | None]:
    """Describe a failure; an error that no store should raise is a bug, and logged with its traceback."""
    if isinstance(error, QuotaStoreError):
        return str(error), None
    if isinstance(error, TimeoutError):
        return "no answer in time", None
    return type(error).__name__, error


def quota_rules(settings: QuotaSettings) -> tuple[QuotaRule, ...]:
    """Make the rules; raises ConfigurationError with all faults if some cannot be applied."""
    rules = tuple(rule.rule(name) for name, rule in settings.rules.items())
    faults = [f"Setting quotas.rules.{rule.name}: {fault}" for rule in rules if (fault := rule.limit.fault())]
    if faults:
        raise ConfigurationError(*faults)
    return rules


def quota_store(settings: QuotaSettings, redis: "RedisClient | None", given: IQuotaStore | None = None) -> IQuotaStore:
    """Choose the store of the container, or Redis, or memory."""
    store = given
    if store is None and redis is not None:
        store = RedisQuotaStore(redis, timeout_seconds=STORE_TIMEOUT_SECONDS)
    if store is None:
        return MemoryQuotaStore(MAX_ENTRIES)
    return OutageTolerantStore(store, settings.on_store_failure, retry_seconds=_STORE_RETRY_SECONDS)


def quota_layer(settings: QuotaSettings, store: IQuotaStore) -> QuotaLayer:
    """Make the layer for calls; raises ConfigurationError if a rule cannot be applied."""
    return QuotaLayer(store, [rule for rule in quota_rules(settings) if rule.counts == "calls"])


class RequestQuotas:
    """Charges each request, of any method, to the rules that count requests."""

    def __init__(self, store: IQuotaStore, rules: Iterable[QuotaRule]) -> None:
        self._store = store
        self._charges = {rule.name: (rule, rule.charge_of_request()) for rule in rules}

    def in_front_of(self, method: Method) -> Method:
        """Put the rules in front of a method."""

        async def counted(request: Request) -> bytes | None:
            claims = [(_request_key(rule, charge, request), charge) for rule, charge in self._charges.values()]
            try:
                refusal = await self._store.take(claims)
                if refusal is not None:
                    raise quota_exceeded(self._charges[refusal.rule][0], refusal)
            except Refused as refused:
                error = InternalError(refused.message, data=error_data(refused.meta))
                error.status = 429 if isinstance(refused, QuotaExceeded) else 503
                raise error from None
            return await method(request)

        return counted


def _request_key(rule: QuotaRule, charge: Charge, request: Request) -> str:
    """Make the key that counts a request; anonymous callers are identified by their address."""
    head, exchange = f"{rule.name}:{charge.scale}:", request.exchange
    if "principal" in rule.per:
        names = exchange.share or exchange.principal.identity
        return f"{head}caller={''.join(map(key_part, names))}"
    return f"{head}tenant={key_part(exchange.principal.tenant)}" if "tenant" in rule.per else head


def request_quotas(settings: QuotaSettings, store: IQuotaStore) -> RequestQuotas | None:
    """Make the rules for requests; None if there are none."""
    rules = [rule for rule in quota_rules(settings) if rule.counts == "requests"]
    return RequestQuotas(store, rules) if rules else None
