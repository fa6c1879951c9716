"""Stores for the results of idempotent calls: in memory, or in Redis for all replicas of a server."""

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from axolotl_core.policies.tool_rules import ClaimResult, IResultStore, ResultStoreError
from axolotl_server.settings.calls import IdempotencySettings

if TYPE_CHECKING:
    from redis.commands.core import AsyncScript

    from axolotl_server.stores.redis_client import RedisClient

_EXPIRY_CHECKS: Final = 16
"""How many of the oldest results are checked for expiry whenever a result is stored."""

MAX_RESULTS: Final = 10_000
"""How many results of idempotent calls are kept in memory. The oldest are dropped first."""
_log: Final = logging.getLogger("axolotl")
_CLAIM: Final = b"c:"
_RESULT: Final = b"r:"

_RENEW: Final = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0"
_RELEASE: Final = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"
_KEEP: Final = """\
local kept = redis.call('GET', KEYS[1])
if kept and kept ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""


class _Stored(NamedTuple):
    record: bytes
    expires_at: float


class MemoryResultStore(IResultStore):
    """Keeps results of one process, and never waits. If there is no room, the oldest results are evicted."""

    def __init__(self, max_entries: int, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._clock = clock
        self._results: OrderedDict[str, _Stored] = OrderedDict()
        self._holders: dict[str, str] = {}
        self.bytes = 0
        """The size of all results, including their keys."""
        self.evicted = 0
        """How many results were evicted before they expired, so that their work may be repeated."""

    def __len__(self) -> int:
        return len(self._results)

    async def claim(self, key: str, holder: str) -> ClaimResult:
        stored = self._results.get(key)
        if stored is not None:
            if stored.expires_at > self._clock():
                return stored.record
            self._drop(key)
        return "mine" if self._holders.setdefault(key, holder) == holder else "theirs"

    async def renew(self, key: str, holder: str) -> bool:
        return self._holders.get(key) == holder

    async def keep(self, key: str, holder: str, record: bytes, seconds: float) -> bool:
        """Store a result, unless it exceeds the maximum size by itself."""
        if self._holders.setdefault(key, holder) != holder:
            return False
        del self._holders[key]
        self._drop(key)
        if len(key) + len(record) > self._max_bytes:
            self._count_eviction()
            return True
        now = self._clock()
        self._results[key] = _Stored(record, now + seconds)
        self.bytes += len(key) + len(record)
        self._make_room(now)
        return True

    async def release(self, key: str, holder: str) -> None:
        if self._holders.get(key) == holder:
            del self._holders[key]

    def _make_room(self, now: float) -> None:
        for key in [key for key, _ in zip(self._results, range(_EXPIRY_CHECKS), strict=False)]:
            if self._results[key].expires_at <= now:
                self._drop(key)
        while len(self._results) > self._max_entries or self.bytes > self._max_bytes:
            self._drop(next(iter(self._results)))
            self._count_eviction()

    def _count_eviction(self) -> None:
        if not self.evicted:
            _log.warning("results are evicted before they expire: raise idempotency.max_bytes")
        self.evicted += 1

    def _drop(self, key: str) -> None:
        stored = self._results.pop(key, None)
        if stored is not None:
            self.bytes -= len(key) + len(stored.record)


class RedisResultStore(IResultStore):
    """Keeps claims and results in Redis.

    A claim expires unless it is renewed, so that another replica can do the work of one that died. Results expire as
    the tool says; Redis must not evict them earlier.
    """

    def __init__(self, redis: "RedisClient", *, claim_seconds: float = 10.0, timeout_seconds: float = 1.0) -> None:
        self._redis = redis
        self._prefix = f"{redis.prefix}result:"
        self._within = partial(redis.within, timeout_seconds, ResultStoreError)
        self._claim_milliseconds = max(1, round(claim_seconds * 1000))
        self.renew_seconds = claim_seconds / 3
        self._renew, self._keep, self._release = map(redis.script, (_RENEW, _KEEP, _RELEASE))

    async def claim(self, key: str, holder: str) -> ClaimResult:
        name, claim, commands = self._prefix + key, _CLAIM + holder.encode(), self._redis.commands
        while True:
            if await self._within(commands.set(name, claim, nx=True, px=self._claim_milliseconds)):
                return "mine"
            found: bytes | None = await self._within(commands.get(name))
            if found == claim:  # the first reply got lost
                return "mine"
            if found is not None:
                return found.removeprefix(_RESULT) if found.startswith(_RESULT) else "theirs"

    async def renew(self, key: str, holder: str) -> bool:
        return bool(await self._run(self._renew, key, holder, self._claim_milliseconds))

    async def keep(self, key: str, holder: str, record: bytes, seconds: float) -> bool:
        return bool(await self._run(self._keep, key, holder, _RESULT + record, max(1, round(seconds * 1000))))

    async def release(self, key: str, holder: str) -> None:
        await self._run(self._release, key, holder)

    def _run(self, script: "AsyncScript", key: str, holder: str, *arguments: bytes | int) -> Awaitable[Any]:
        claim = _CLAIM + holder.encode()
        return self._within(script(keys=[self._prefix + key], args=[claim, *arguments]))


def make_result_store(
    settings: IdempotencySettings, redis: "RedisClient | None", given: IResultStore | None = None
) -> IResultStore:
    """Choose the store of the container, or Redis, or memory."""
    if given is not None:
        return given
    return MemoryResultStore(MAX_RESULTS, settings.max_bytes) if redis is None else RedisResultStore(redis)
