"""Quotas in Redis, so that all replicas of a server share one count."""

from collections.abc import Callable, Sequence
from hashlib import sha1
from typing import Any, Final

from redis.exceptions import NoScriptError

from axolotl_core.policies.quota import BucketCharge, Charge, Claim, IQuotaStore, QuotaRefusal, QuotaStoreError
from axolotl_server.stores.redis_client import RedisClient, RedisUnavailable

TAKE_SCRIPT: Final = """\
-- The same as axolotl_core.policies.quota_charge, in numbers that floating point holds exactly.
-- KEYS: one for each claim. ARGV: the time in microseconds, empty for the clock of Redis, so that replicas agree;
-- then kind, cost, capacity and step for each claim. Answers 0, or which claim is refused and for how long.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local claims = {}
for i, value in ipairs(redis.call('MGET', unpack(KEYS))) do
  local at = 4 * i - 3
  local claim = {
    bucket = ARGV[at + 1] == 'bucket',
    cost = tonumber(ARGV[at + 2]),
    capacity = tonumber(ARGV[at + 3]),
    step = tonumber(ARGV[at + 4]),
  }
  if value then
    local amount, stamp = string.match(value, '^(%d+):(%d+)$')
    claim.amount, claim.stamp = tonumber(amount), tonumber(stamp)
  end
  claims[i] = claim
end

local function settle(claim)
  if claim.bucket then
    local passed = math.max(0, now - (claim.stamp or now))
    claim.amount = math.max(0, (claim.amount or 0) - passed * claim.step)
    claim.stamp = now
    return
  end
  local number = math.floor(now / claim.step)
  if not claim.stamp or claim.stamp < number or claim.stamp > number + 1 then
    claim.amount, claim.stamp = 0, number
  end
end

local function ending(claim)
  if claim.bucket then
    return claim.stamp + math.ceil(claim.amount / claim.step)
  end
  return (claim.stamp + 1) * claim.step
end

local function wait(claim)
  if claim.bucket then
    return math.ceil((claim.amount + claim.cost - claim.capacity) / claim.step)
  end
  return ending(claim) - now
end

local function keep(key, claim)
  local milliseconds = math.max(1, math.ceil((ending(claim) - now) / 1000))
  local value = string.format('%.0f:%.0f', claim.amount, claim.stamp)
  redis.call('SET', key, value, 'PX', string.format('%.0f', milliseconds))
end

local refused, longest = 0, 0
for i, claim in ipairs(claims) do
  local before = claim.stamp
  settle(claim)
  if before and claim.stamp < before then
    keep(KEYS[i], claim)
  end
  if claim.amount + claim.cost > claim.capacity and wait(claim) > longest then
    refused, longest = i, wait(claim)
  end
end
if refused > 0 then
  return {refused, string.format('%.0f', longest)}
end

for i, claim in ipairs(claims) do
  claim.amount = claim.amount + claim.cost
  keep(KEYS[i], claim)
end
return {0, '0'}
"""


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
