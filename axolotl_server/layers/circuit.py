"""The circuit breaker: the state of one upstream, and the decision which calls may run."""

from collections.abc import Callable
from time import monotonic
from typing import Final

from axolotl_core.policies.tool_rules import Breaker, BreakerState

_SLICES: Final = 10
"""The number of parts of the window; the oldest part is dropped as a whole."""


class _Window:
    """The number of failed and of other calls in the recent past."""

    def __init__(self, seconds: float) -> None:
        self._slice_seconds = seconds / _SLICES
        self._slices: dict[int, tuple[int, int]] = {}

    def add(self, failed: bool, now: float) -> None:
        number = int(now // self._slice_seconds)
        known = self._slices.get(number)
        if known is None:
            known = 0, 0
            for old in [old for old in self._slices if old <= number - _SLICES]:
                del self._slices[old]
        failures, others = known
        self._slices[number] = (failures + failed, others + (not failed))

    @property
    def counts(self) -> tuple[int, int]:
        failures = sum(failed for failed, _ in self._slices.values())
        return failures, failures + sum(others for _, others in self._slices.values())


class CircuitBreaker:
    """Closed until too many calls fail, then open for a while, then half open: one call may run to test the upstream.

    A call counts only in the epoch in which it began: one that began before the breaker opened says nothing about the
    upstream now.
    """

    def __init__(self, rule: Breaker, clock: Callable[[], float] = monotonic) -> None:
        self._rule = rule
        self._clock = clock
        self._window = _Window(rule.window_seconds)
        self._open_until: float | None = None
        self._probing = False
        self._epoch = 0
        self.opened = 0
        """How often it has opened."""

    @property
    def state(self) -> BreakerState:
        """Whether calls run, are refused, or one may run as a test."""
        if self._open_until is None:
            return "closed"
        return "open" if self._clock() < self._open_until else "half_open"

    @property
    def wait_seconds(self) -> float:
        """How long the caller of a refused call should wait."""
        left = 0.0 if self._open_until is None else self._open_until - self._clock()
        # It is not known how long the test takes.
        return left if left > 0 else min(1.0, self._rule.open_seconds)

    def enter(self) -> int | None:
        """Admit a call and return the epoch to `leave` with, or None if it is refused."""
        state = self.state
        if state == "open" or (state == "half_open" and self._probing):
            return None
        self._probing = state == "half_open"
        return self._epoch

    def leave(self, epoch: int, failed: bool | None) -> BreakerState | None:
        """Count a call, unless `failed` is None, and return the new state if it has changed."""
        if epoch != self._epoch:
            return None
        if self._open_until is not None:
            self._probing = False
            return None if failed is None else self._open() if failed else self._close()
        return None if failed is None else self._count(failed)

    def _count(self, failed: bool) -> BreakerState | None:
        self._window.add(failed, self._clock())
        if not failed:
            return None
        failures, calls = self._window.counts
        too_many = failures >= self._rule.failures and failures >= self._rule.share * calls
        return self._open() if too_many else None

    def _open(self) -> BreakerState:
        self._epoch += 1
        self.opened += 1
        self._open_until = self._clock() + self._rule.open_seconds
        return "open"

    def _close(self) -> BreakerState:
        self._epoch += 1
        self._open_until = None
        self._window = _Window(self._rule.window_seconds)
        return "closed"
