"""What a call takes of a limit, in whole numbers, so that nothing rounds and every store comes to the same answer.

Costs count in thousandths, time in microseconds since 1970. No number exceeds 2^53, so that a store may count in
floating point, as Redis does.
"""

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["BucketCharge", "Charge", "State", "WindowCharge"]

State: TypeAlias = tuple[int, int]
"""What a store keeps under a key: an amount, and the moment or the number of the window that it belongs to."""


@dataclass(frozen=True, slots=True)
class BucketCharge:
    """What a call pours into a bucket that leaks.

    This is a token bucket upside down: the empty one has all its tokens. The unit, a tick, is chosen for each rate so
    that a thousandth of a cost and what leaks in a microsecond are both whole numbers of ticks.
    """

    rule: str
    cost: int
    capacity: int
    leak: int
    """How many ticks leak in a microsecond."""
    scale: str
    """Tells amounts of this rate from those of another, where a rule is changed but its keys are still there."""

    def settled(self, state: State | None, now: int) -> State:
        """Give what is in the bucket now.

        Where the clock went back, nothing leaked, and the bucket leaks on from the time that it is now.
        """
        if state is None:
            return 0, now
        amount, then = state
        if now > then:
            amount -= (now - then) * self.leak
        return (amount if amount > 0 else 0), now

    def wait(self, state: State, now: int) -> int:
        """Say how many microseconds pass until there is room."""
        return -((self.capacity - self.cost - state[0]) // self.leak)

    def end(self, state: State) -> int:
        """Say from when on the bucket is empty, which is as if there were none."""
        return state[1] - (-state[0] // self.leak)


@dataclass(frozen=True, slots=True)
class WindowCharge:
    """What a call adds to the count of a stretch of the calendar."""

    rule: str
    cost: int
    capacity: int
    length: int
    """How many microseconds the window has."""
    scale: str

    def settled(self, state: State | None, now: int) -> State:
        """Give the count of the present window; where the clock went back over its border, the later one goes on."""
        number = now // self.length
        if state is not None and number <= state[1] <= number + 1:
            return state
        return 0, number

    def wait(self, state: State, now: int) -> int:
        """Say how many microseconds pass until the next window begins."""
        return self.end(state) - now

    def end(self, state: State) -> int:
        """Say when the window ends, from when on its count means nothing."""
        return (state[1] + 1) * self.length


Charge: TypeAlias = BucketCharge | WindowCharge
