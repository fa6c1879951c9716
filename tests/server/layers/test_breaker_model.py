"""The circuit breaker compared with a simple model, for random events."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from axolotl_core.policies.tool_rules import Breaker
from axolotl_server.layers.breaker import CircuitBreaker

pytestmark = pytest.mark.slow

RULE = Breaker(failures=3, share=0.5, window_seconds=10.0, open_seconds=4.0)


class BreakerMachine(RuleBasedStateMachine):
    """Random calls and times; the model keeps every outcome."""

    running = Bundle("running")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.breaker = CircuitBreaker(RULE, lambda: self.now)
        self.epoch = 0
        self.outcomes: list[tuple[float, bool]] = []
        self.open_until: float | None = None
        self.probes = 0

    @rule(seconds=st.sampled_from([0.25, 1.0, 3.75, 4.0, 10.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=running)
    def begin(self) -> tuple[int | None, int]:
        return self.enter()

    @rule(call=consumes(running), failed=st.sampled_from([True, False, None]))
    def end(self, call: tuple[int | None, int], failed: bool | None) -> None:
        self.leave(call, failed)

    def enter(self) -> tuple[int | None, int]:
        """Admit a call if the breaker is closed or no probe is running."""
        admitted = self.breaker.enter()
        waiting = self.open_until is not None and (self.now < self.open_until or self.probes > 0)
        assert (admitted is None) is waiting
        if admitted is not None and self.open_until is not None:
            self.probes += 1
        return admitted, self.epoch

    def leave(self, call: tuple[int | None, int], failed: bool | None) -> None:
        """Count a call."""
        admitted, epoch = call
        if admitted is None:
            return
        self.breaker.leave(admitted, failed)
        if epoch != self.epoch:
            return
        if self.open_until is not None:
            self.probes = 0
            if failed is not None:
                self.turn(failed)
        elif failed is not None:
            self.outcomes.append((self.now, failed))
            if failed and self.too_many():
                self.turn(True)

    @rule(failed=st.booleans())
    def call(self, failed: bool) -> None:
        """Start and end a call."""
        self.leave(self.enter(), failed)

    def turn(self, failed: bool) -> None:
        self.epoch += 1
        self.outcomes = []
        self.open_until = self.now + RULE.open_seconds if failed else None

    def too_many(self) -> bool:
        recent = [failed for time, failed in self.outcomes if time // 1.0 > self.now // 1.0 - 10]
        return sum(recent) >= RULE.failures and sum(recent) >= RULE.share * len(recent)

    @invariant()
    def agree(self) -> None:
        """The breaker and the model are in the same state."""
        expected = "closed" if self.open_until is None else "open" if self.now < self.open_until else "half_open"
        assert self.breaker.state == expected
        assert self.breaker.wait_seconds > 0


TestBreaker = BreakerMachine.TestCase
TestBreaker.settings = settings(max_examples=80, stateful_step_count=60, deadline=None)
