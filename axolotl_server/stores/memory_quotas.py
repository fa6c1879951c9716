"""Quota store in memory, with a maximum number of counts."""

import time
from collections.abc import Callable, Sequence
from heapq import heappop, heappush, heapreplace
from typing import Final

from axolotl_core.policies.quota import Charge, Claim, IQuotaStore, QuotaRefusal, State

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
