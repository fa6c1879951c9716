"""A breaker, compared with a plain model of it, whatever happens in whatever order."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from axolotl_core.policies.tool_rules import Breaker
from axolotl_server.layers.circuit import CircuitBreaker

RULE = Breaker(failures=3, share=0.5, window_seconds=10.0, open_seconds=4.0)


class BreakerMachine(RuleBasedStateMachine):
    """Calls enter and leave while time passes; the model keeps every outcome and counts anew each time."""

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
        """Let time pass."""
        self.now += seconds

    @rule(target=running)
    def begin(self) -> tuple[int | None, int]:
        """Begin a call."""
        return self.enter()

    @rule(call=consumes(running), failed=st.sampled_from([True, False, None]))
    def end(self, call: tuple[int | None, int], failed: bool | None) -> None:
        """End a call."""
        self.leave(call, failed)

    def enter(self) -> tuple[int | None, int]:
        """Let a call in if the breaker is closed, or nobody else tries."""
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
        """Begin a call and end it at once."""
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
        """Both are in the same state."""
        expected = "closed" if self.open_until is None else "open" if self.now < self.open_until else "half_open"
        assert self.breaker.state == expected
        assert self.breaker.wait_seconds > 0


TestBreaker = BreakerMachine.TestCase
TestBreaker.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
