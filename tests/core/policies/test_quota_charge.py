"""The arithmetic of limits, also when the clock is set back."""

from fractions import Fraction
from itertools import accumulate

from hypothesis import example, given
from hypothesis import strategies as st

from axolotl_core.policies.quota import Charge, RateLimit, State, WindowLimit
from tests.support.core.quota_model import SECOND, START, Paper, costs, exact, rate_limits, window_limits

RATES = (0.01, 1 / 3, 0.7, 1.0, 3.0, 50.0, 33.333, 99_999.0)
steps = st.one_of(st.integers(0, 50), st.integers(0, SECOND), st.integers(0, 200 * SECOND))
calls = st.lists(st.tuples(steps, costs), max_size=60)
limits = st.one_of(rate_limits(*RATES), window_limits)


def charge_of(limit: RateLimit | WindowLimit, cost: float) -> Charge:
    charge = limit.charge("rule", cost)
    assert charge is not None
    return charge


class Keeper:
    """A minimal store for one key."""

    def __init__(self, limit: RateLimit | WindowLimit) -> None:
        self.limit = limit
        self.state: State | None = None

    def take(self, cost: float, now: int) -> bool:
        charge = charge_of(self.limit, cost)
        amount, stamp = charge.settled(self.state, now)
        granted = amount + charge.cost <= charge.capacity
        self.state = amount + charge.cost * granted, stamp
        return granted


@given(rate_limits(*RATES), calls)
@example(RateLimit(3.0, 3.0), [(0, 1.0)] * 4 + [(333_333, 1.0), (1, 1.0)])
def test_a_rate_is_never_exceeded(limit: RateLimit, wanted: list[tuple[int, float]]) -> None:
    """Between any two calls, no more is charged than the burst and the rate allow."""
    keeper, now, taken = Keeper(limit), START, []
    for step, cost in wanted:
        now += step
        if keeper.take(cost, now):
            taken.append((now, exact(cost)))
    for first, (begin, _) in enumerate(taken):
        for (end, _), total in zip(taken[first:], accumulate(cost for _, cost in taken[first:]), strict=True):
            assert total <= exact(limit.burst) + limit.rate * Fraction(end - begin, SECOND)


@given(limits, calls)
def test_the_arithmetic_is_exact(limit: RateLimit | WindowLimit, wanted: list[tuple[int, float]]) -> None:
    """The integer arithmetic agrees with exact fractions."""
    keeper, paper, now = Keeper(limit), Paper(), START
    for step, cost in wanted:
        now += step
        assert keeper.take(cost, now) is (not paper.take([("key", limit, cost)], now))


@given(window_limits, calls)
def test_a_quota_is_never_exceeded(limit: WindowLimit, wanted: list[tuple[int, float]]) -> None:
    """The limit holds in each minute, hour or day."""
    keeper, now, length = Keeper(limit), START, charge_of(limit, 1.0)
    taken: dict[int, Fraction] = {}
    for step, cost in wanted:
        now += step
        if keeper.take(cost, now):
            window = now // length.end((0, 0))
            taken[window] = taken.get(window, Fraction()) + exact(cost)
    assert all(total <= exact(limit.limit) for total in taken.values())


@given(
    rate_limits(*RATES),
    st.lists(st.tuples(st.one_of(steps, steps.map(int.__neg__)), costs), max_size=60),
)
def test_a_clock_set_back_grants_nothing(limit: RateLimit, wanted: list[tuple[int, float]]) -> None:
    """Only forward movement of the clock counts."""
    keeper, now, forward, total = Keeper(limit), START, 0, Fraction()
    for step, cost in wanted:
        now, forward = now + step, forward + max(0, step)
        if keeper.take(cost, now):
            total += exact(cost)
        assert total <= exact(limit.burst) + limit.rate * Fraction(forward, SECOND)


def test_a_clock_set_back_does_not_block_callers() -> None:
    """A bucket used with a clock an hour ahead refills at its usual rate."""
    keeper = Keeper(RateLimit(1.0, 2.0))
    assert [keeper.take(1.0, START + 3600 * SECOND) for _ in range(3)] == [True, True, False]
    assert [keeper.take(1.0, START + second * SECOND // 4) for second in range(5)] == [False] * 4 + [True]


def test_a_window_goes_on_where_the_clock_went_back_over_its_border() -> None:
    """Setting the clock back at midnight grants no second quota, and a wrong year does not persist."""
    midnight = 20_000 * 86_400 * SECOND
    keeper = Keeper(WindowLimit(1.0, "day"))
    assert keeper.take(1.0, midnight)
    assert not keeper.take(1.0, midnight - SECOND)
    assert not keeper.take(1.0, midnight + SECOND)
    assert keeper.take(1.0, midnight - 365 * 86_400 * SECOND)


@given(limits, calls, costs)
def test_the_wait_is_exact(limit: RateLimit | WindowLimit, before: list[tuple[int, float]], cost: float) -> None:
    """A refused call is accepted exactly after the wait that was returned."""
    keeper, now = Keeper(limit), START
    for step, other in before:
        now += step
        keeper.take(other, now)
    charge, state = charge_of(limit, cost), keeper.state
    if keeper.take(cost, now) or state is None:
        return
    wait = charge.wait(charge.settled(state, now), now)
    assert wait > 0
    for moment, passes in ((now + wait - 1, False), (now + wait, True)):
        keeper.state = state
        assert keeper.take(cost, moment) is passes


@given(limits, calls, steps)
def test_expired_states_can_be_dropped(
    limit: RateLimit | WindowLimit, before: list[tuple[int, float]], late: int
) -> None:
    """After its end, and not before, a state can be dropped."""
    keeper, now = Keeper(limit), START
    for step, cost in before:
        now += step
        keeper.take(cost, now)
    charge = charge_of(limit, 1.0)
    if keeper.state is None:
        return
    end = charge.end(keeper.state)
    for moment in (end, end + late):
        assert charge.settled(keeper.state, moment) == charge.settled(None, moment)
    if keeper.state[0] and end > now:
        assert charge.settled(keeper.state, end - 1) != charge.settled(None, end - 1)


@given(limits, calls, st.lists(steps, max_size=10))
def test_looking_takes_nothing(
    limit: RateLimit | WindowLimit, before: list[tuple[int, float]], looks: list[int]
) -> None:
    """Intermediate reads do not change the result."""
    keeper, now = Keeper(limit), START
    for step, cost in before:
        now += step
        keeper.take(cost, now)
    charge, seen = charge_of(limit, 1.0), keeper.state
    for step in looks:
        now += step
        seen = charge.settled(seen, now)
    assert charge.settled(seen, now) == charge.settled(keeper.state, now)
