"""Quotas in the memory of the process, bounded."""

import time
from collections.abc import Callable, Sequence
from heapq import heappop, heappush, heapreplace
from typing import Final

from axolotl_core.policies.quota import Charge, Claim, IQuotaStore, QuotaRefusal, State

_LOOKS: Final = 16


class MemoryQuotaStore(IQuotaStore):
    """Counts for one process, and never waits.

    Each new key lets go of some whose end has come: a bucket that is empty again and a window that is over say nothing
    that is not so without them. Where all places are taken, the key whose end is nearest goes: it says the least.
    """

    def __init__(self, max_entries: int, clock: Callable[[], int] = time.time_ns) -> None:
        """Say how much is kept at most; `clock` gives nanoseconds since 1970."""
        self._max_entries = max_entries
        self._clock = clock
        self._states: dict[str, State] = {}
        self._ends: list[tuple[int, str, Charge]] = []
        """A heap with each key once. An end that has moved on since is put right when it comes to the top."""

    def __len__(self) -> int:
        return len(self._states)

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        """Take all or nothing."""
        now = self._clock() // 1000
        states = self._states
        refusal = None
        changes: list[tuple[str, Charge, State]] = []
        for key, charge in claims:
            kept = states.get(key)
            amount, stamp = charge.settled(kept, now)
            if kept is not None and stamp < kept[1]:
                states[key] = amount, stamp  # the clock went back: time is reckoned anew, also by a refused call
            if amount + charge.cost > charge.capacity:
                wait = charge.wait((amount, stamp), now)
                if refusal is None or wait > refusal.retry_after_microseconds:
                    refusal = QuotaRefusal(charge.rule, wait)
            changes.append((key, charge, (amount + charge.cost, stamp)))
        if refusal is not None:
            return refusal
        for key, charge, state in changes:
            if key not in states:
                self._make_room(now)
                heappush(self._ends, (charge.end(state), key, charge))
            states[key] = state
        return None

    def _make_room(self, now: int) -> None:
        """Drop keys whose end has come; one in any case where no place is left."""
        states, ends = self._states, self._ends
        for _ in range(min(_LOOKS, len(ends))):
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
