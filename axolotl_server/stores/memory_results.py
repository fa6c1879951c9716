"""Result store in memory, with a maximum number and size of results."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from axolotl_core.policies.tool_rules import ClaimResult, IResultStore
from axolotl_server.settings.calls import IdempotencySettings

if TYPE_CHECKING:
    from axolotl_server.stores.redis_client import RedisClient

_EXPIRY_CHECKS: Final = 16
"""How many of the oldest results are checked for expiry whenever a result is stored."""

MAX_RESULTS: Final = 10_000
"""How many results of idempotent calls are kept in memory. The oldest are dropped first."""
_log: Final = logging.getLogger("axolotl")


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
