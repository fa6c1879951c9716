"""Quotas in Redis, so that all replicas of a server share one count."""

from collections.abc import Callable, Sequence
from hashlib import sha1
from typing import Any, Final

from redis.exceptions import NoScriptError

from axolotl_core.quota import Claim, IQuotaStore, QuotaRefusal, QuotaStoreError
from axolotl_core.quota_charge import BucketCharge, Charge
from axolotl_server.stores.redis_client import RedisClient, RedisUnavailable
from axolotl_server.stores.redis_quota_script import TAKE_SCRIPT

__all__ = ["RedisQuotaStore"]

_DIGEST: Final = sha1(TAKE_SCRIPT.encode(), usedforsecurity=False).hexdigest()


class RedisQuotaStore(IQuotaStore):
    """Counts where all replicas look, at the clock of Redis; needs the extra `redis`.

    One script does all the work, so that a call is one round trip and nothing comes between. Keys live until they say
    nothing any more.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "axolotl:quota:",
        timeout_seconds: float = 0.25,
        max_connections: int = 20,
        clock: Callable[[], int] | None = None,
    ) -> None:
        """Say which Redis; it is connected to when something is taken.

        `clock` gives nanoseconds since 1970, to reckon by them instead of the clock of Redis.

        Raises:
            ConfigurationError: if the URL is none of a Redis.
        """
        self._prefix = prefix
        self._clock = clock
        self._redis = RedisClient(
            url, "quotas.redis_url", timeout_seconds=timeout_seconds, max_connections=max_connections
        )

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        """Take all or nothing."""
        now = "" if self._clock is None else self._clock() // 1000
        keys = [self._prefix + key for key, _ in claims]
        numbers = [number for _, charge in claims for number in _numbers(charge)]
        try:
            refused, microseconds = await self._redis.ask(self._run(len(keys), *keys, now, *numbers))
        except RedisUnavailable as error:
            raise QuotaStoreError(str(error)) from error
        return QuotaRefusal(claims[refused - 1][1].rule, int(microseconds)) if refused else None

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.close()

    async def _run(self, *arguments: Any) -> Any:
        try:
            return await self._redis.commands.evalsha(_DIGEST, *arguments)
        except NoScriptError:
            return await self._redis.commands.eval(TAKE_SCRIPT, *arguments)


def _numbers(charge: Charge) -> tuple[str, int, int, int]:
    if isinstance(charge, BucketCharge):
        return "bucket", charge.cost, charge.capacity, charge.leak
    return "window", charge.cost, charge.capacity, charge.length
