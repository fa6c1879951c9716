"""A reference model of quotas with exact fractions, a list of tokens and a table of windows."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from hypothesis import strategies as st

from axolotl_core.policies.quota import Claim, RateLimit, WindowLimit

SECOND: Final = 1_000_000
SECONDS: Final = {"minute": 60, "hour": 3600, "day": 86_400}
START: Final = 1_800_000_000 * SECOND
"""A time in 2027, in microseconds."""

Limit = RateLimit | WindowLimit
Wanted = tuple[str, Limit, float]
"""A key, its limit and its cost."""


def claims_of(wanted: Sequence[Wanted]) -> list[Claim]:
    """Convert to the claims of a store; the rule is named like the key."""
    claims: list[Claim] = []
    for key, limit, cost in wanted:
        charge = limit.charge(key, cost)
        assert charge is not None
        claims.append((key, charge))
    return claims


def exact(number: float) -> Fraction:
    """Parse a number exactly."""
    return Fraction(repr(number))


class Paper:
    """Returns the keys that reject a call; its clock never goes back."""

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[Fraction, int]] = {}
        self._used: dict[tuple[str, int], Fraction] = {}

    def take(self, wanted: Sequence[Wanted], now: int) -> set[str]:
        """Take all costs, or none if some keys reject them."""
        against = {key for key, limit, cost in wanted if self._left(key, limit, now) < exact(cost)}
        if not against:
            for key, limit, cost in wanted:
                self._note(key, limit, exact(cost), now)
        return against

    def _left(self, key: str, limit: Limit, now: int) -> Fraction:
        if isinstance(limit, WindowLimit):
            return exact(limit.limit) - self._used.get((key, self._window(limit, now)), Fraction())
        tokens, then = self._tokens.get(key, (exact(limit.burst), now))
        return min(exact(limit.burst), tokens + Fraction(now - then, SECOND) * limit.rate)

    def _note(self, key: str, limit: Limit, cost: Fraction, now: int) -> None:
        left = self._left(key, limit, now) - cost
        if isinstance(limit, WindowLimit):
            self._used[key, self._window(limit, now)] = exact(limit.limit) - left
        else:
            self._tokens[key] = left, now

    def _window(self, limit: WindowLimit, now: int) -> int:
        return now // (SECONDS[limit.window] * SECOND)


costs = st.sampled_from([0.001, 0.1, 0.25, 1.0, 2.0, 2.5])
"""Costs that fit into every limit below."""
bursts = st.sampled_from([3.0, 4.5, 7.0, 20.0])
window_limits = st.builds(WindowLimit, st.sampled_from([3.0, 4.5, 10.0]), st.sampled_from(["minute", "hour", "day"]))


def rate_limits(*rates: float) -> st.SearchStrategy[RateLimit]:
    """Generate limits of some rates."""
    return st.builds(RateLimit, st.sampled_from(rates), bursts)
