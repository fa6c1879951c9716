"""Stores for the counts of quotas: in memory, or in Redis for all replicas of a server."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Final

from axolotl_core.policies.quota import BucketCharge, Charge, Claim, IQuotaStore, QuotaRefusal, QuotaStoreError, State

if TYPE_CHECKING:
    from axolotl_server.stores.redis_client import RedisClient

_EXPIRY_CHECKS: Final = 16
"""How many counts are checked for expiry whenever a new key is counted."""


class MemoryQuotaStore(IQuotaStore):
    """Keeps the counts of one process, and never waits.

    Each new key removes some that have expired: an empty bucket or a window that is over has no effect any more. If
    there is no room, the key that expires next is removed, because it has the least effect.
    """

    def __init__(self, max_entries: int, clock: Callable[[], int] = time.time_ns) -> None:
        """Set the maximum number of counts; `clock` returns nanoseconds since 1970."""
        self._max_entries = max_entries
        self._clock = clock
        self._states: dict[str, State] = {}
        self._ends: list[tuple[int, str, Charge]] = []
        """A heap with each key once. An end that has changed since is corrected when it reaches the top."""

    def __len__(self) -> int:
        return len(self._states)

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        now, states, refusal = self._clock() // 1000, self._states, None
        changes: list[State] = []
        for key, charge in claims:
            kept = states.get(key)
            amount, stamp = charge.settled(kept, now)
            if kept is not None and stamp < kept[1]:
                states[key] = amount, stamp  # the clock was set back: start again, even if the call is refused
            after = amount + charge.cost
            if after > charge.capacity:
                wait = charge.wait((amount, stamp), now)
                if refusal is None or wait > refusal.retry_after_microseconds:
                    refusal = QuotaRefusal(charge.rule, wait)
            changes.append((after, stamp))
        if refusal is not None:
            return refusal
        for (key, charge), state in zip(claims, changes, strict=True):
            if key not in states:
                self._make_room(now)
                heappush(self._ends, (charge.end(state), key, charge))
            states[key] = state
        return None

    def _make_room(self, now: int) -> None:
        """Remove expired keys, and one more if there is no room otherwise."""
        states, ends = self._states, self._ends
        for _ in range(min(_EXPIRY_CHECKS, len(ends))):
            end, key, charge = ends[0]
            true_end = charge.end(states[key])
            if true_end > end:
                heapreplace(ends, (true_end, key, charge))
            elif end <= now or len(states) >= self._max_entries:
                heappop(ends)
                del states[key]
            else:
                return
        if len(states) >= self._max_entries:
            del states[heappop(ends)[1]]


_TAKE: Final = """\
-- The arithmetic of axolotl_core.policies.quota, in integers that a double represents exactly.
-- KEYS: one per claim. ARGV: the time in microseconds, or empty to use the clock of Redis, so that replicas agree; then
-- kind, cost, capacity and step of each claim. Returns 0, or the number of the refused claim and how long to wait.
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


class RedisQuotaStore(IQuotaStore):
    """Keeps counts in Redis, by its clock.

    A call is one round trip: one script checks and updates all counts. Keys expire as soon as they have no effect.
    """

    def __init__(
        self, redis: "RedisClient", *, timeout_seconds: float = 0.25, clock: Callable[[], int] | None = None
    ) -> None:
        """Use a client; `clock` returns nanoseconds since 1970 and replaces the clock of Redis."""
        self._prefix = f"{redis.prefix}quota:"
        self._within = partial(redis.within, timeout_seconds, QuotaStoreError)
        self._clock = clock
        self._take = redis.script(_TAKE)

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        now = "" if self._clock is None else self._clock() // 1000
        keys = [self._prefix + key for key, _ in claims]
        numbers: list[str | int] = []
        for _, charge in claims:
            step = ("bucket", charge.leak) if isinstance(charge, BucketCharge) else ("window", charge.length)
            numbers += [step[0], charge.cost, charge.capacity, step[1]]
        reply = self._take(keys=keys, args=[now, *numbers])
        refused, microseconds = await self._within(reply)
        return QuotaRefusal(claims[refused - 1][1].rule, int(microseconds)) if refused else None
