"""Results in the memory of the process, bounded in number and in size."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from axolotl_core.policies.tool_rules import ClaimResult, IResultStore

_LOOKS: Final = 16
"""How many of the oldest results are looked at, with each that comes, whether their time is over."""


class _Stored(NamedTuple):
    record: bytes
    until: float


class MemoryResultStore(IResultStore):
    """Keeps results for one process, and never waits. Where there is no room left, the oldest go."""

    def __init__(self, max_entries: int, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._clock = clock
        self._results: OrderedDict[str, _Stored] = OrderedDict()
        self._holders: dict[str, str] = {}
        self.bytes = 0
        """How much is stored, keys included."""
        self.evicted = 0
        """How many results went before their time, so that their work may be done again."""

    def __len__(self) -> int:
        return len(self._results)

    async def claim(self, key: str, holder: str) -> ClaimResult:
        """Give the result of a key, or the key."""
        stored = self._results.get(key)
        if stored is not None:
            if stored.until > self._clock():
                return stored.record
            self._drop(key)
        return "mine" if self._holders.setdefault(key, holder) == holder else "theirs"

    async def renew(self, key: str, holder: str) -> bool:
        """Say whether the key is still held: nobody else can have taken it."""
        return self._holders.get(key) == holder

    async def keep(self, key: str, holder: str, record: bytes, seconds: float) -> bool:
        """Store a result; one that exceeds the bound all by itself is not stored."""
        if self._holders.setdefault(key, holder) != holder:
            return False
        del self._holders[key]
        self._drop(key)
        if len(key) + len(record) > self._max_bytes:
            self.evicted += 1
            return True
        now = self._clock()
        self._results[key] = _Stored(record, now + seconds)
        self.bytes += len(key) + len(record)
        self._make_room(now)
        return True

    async def release(self, key: str, holder: str) -> None:
        """Let go of a key."""
        if self._holders.get(key) == holder:
            del self._holders[key]

    def _make_room(self, now: float) -> None:
        for key in [key for key, _ in zip(self._results, range(_LOOKS), strict=False)]:
            if self._results[key].until <= now:
                self._drop(key)
        while len(self._results) > self._max_entries or self.bytes > self._max_bytes:
            self._drop(next(iter(self._results)))
            self.evicted += 1

    def _drop(self, key: str) -> None:
        stored = self._results.pop(key, None)
        if stored is not None:
            self.bytes -= len(key) + len(stored.record)
