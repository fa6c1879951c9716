"""Quotas: rules, charges and `IQuotaStore`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from axolotl_core.errors import AxolotlError, ConfigurationError
from axolotl_core.features.feature import Kind
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.names import is_within_toolset, name_matches

State: TypeAlias = tuple[int, int]
"""The state of a key in a store: an amount, and its time or the number of its window."""


class BucketCharge(msgspec.Struct, frozen=True):
    """A charge on a leaky bucket, which is a token bucket upside down: the empty bucket has all tokens.

    The unit is a tick. It is chosen for each rate so that a thousandth of a cost and the leak per microsecond are both
    integers.
    """

    rule: str
    cost: int
    capacity: int
    leak: int
    """How many ticks leak per microsecond."""
    scale: str
    """Identifies the unit, because keys outlive a change of the rule."""

    def settled(self, state: State | None, now: int) -> State:
        """Return the state of the bucket now.

        If the clock went back, nothing leaked, and the bucket continues to leak from the present time.
        """
        if state is None:
            return 0, now
        amount, then = state
        if now > then:
            amount -= (now - then) * self.leak
        return (amount if amount > 0 else 0), now

    def wait(self, state: State, now: int) -> int:
        """Return the microseconds until the charge fits."""
        return -((self.capacity - self.cost - state[0]) // self.leak)

    def end(self, state: State) -> int:
        """Return the time when the bucket is empty, so that its state can be dropped."""
        return state[1] - (-state[0] // self.leak)


class WindowCharge(msgspec.Struct, frozen=True):
    """A charge on a minute, hour or day."""

    rule: str
    cost: int
    capacity: int
    length: int
    """The length of the window in microseconds."""
    scale: str

    def settled(self, state: State | None, now: int) -> State:
        """Return the state of the present window, or of the next one if the clock went back."""
        number = now // self.length
        if state is not None and number <= state[1] <= number + 1:
            return state
        return 0, number

    def wait(self, state: State, now: int) -> int:
        """Return the microseconds until the next window begins."""
        return self.end(state) - now

    def end(self, state: State) -> int:
        """Return the time when the window ends, so that its state can be dropped."""
        return (state[1] + 1) * self.length


Charge: TypeAlias = BucketCharge | WindowCharge

Dimension: TypeAlias = Literal["principal", "tenant", "tool", "toolset"]
"""What a rule counts separately."""
Counted: TypeAlias = Literal["calls", "requests"]
"""What a rule counts: calls of features, or requests of any method."""
Window: TypeAlias = Literal["minute", "hour", "day"]
"""A calendar interval, in UTC."""
Claim: TypeAlias = tuple[str, Charge]
"""A key and the charge on it."""

_THOUSANDTHS: Final = 1000
_MICROSECONDS: Final = 1_000_000
_RATE_PRECISION: Final = 1_000_000
_MAX_TICKS: Final = 2**52
_WINDOW_SECONDS: Final[Mapping[Window, int]] = {"minute": 60, "hour": 3600, "day": 86_400}


class QuotaStoreError(AxolotlError):
    """The quota store is unavailable. The text is written to the log and contains no secrets."""


class QuotaRefusal(NamedTuple):
    """The rule that refuses a call, and the time until the call could be accepted."""

    rule: str
    retry_after_microseconds: int


class IQuotaStore(ABC):
    """Counts charges under keys that the server chooses."""

    @abstractmethod
    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        """Charge all claims of a call, or none. If several rules refuse the call, return the one with the longest wait.

        The keys of a call are distinct. The state of a key can be dropped after the `end` of its charge, and before
        that only to free space.

        Raises:
            QuotaStoreError: if the store is unavailable. The server decides what happens to the call.
        """

    async def close(self) -> None:
        """Close connections."""
        return


class RateLimit(msgspec.Struct, frozen=True):
    """A token bucket: a rate per second and a burst."""

    per_second: float
    burst: float

    @property
    def rate(self) -> Fraction:
        """The effective rate, exact to six decimals."""
        rate = _exact(self.per_second)
        precision = _RATE_PRECISION
        return rate.limit_denominator(precision) if rate >= 1 else 1 / (1 / rate).limit_denominator(precision)

    def fault(self) -> str | None:
        """Describe what is wrong with these numbers; None if they are valid."""
        if not (isfinite(self.per_second) and isfinite(self.burst) and self.per_second > 0 and self.burst > 0):
            return "its rate and burst must be above 0"
        if floor(_exact(self.burst) * _THOUSANDTHS) * self._ticks[1] > _MAX_TICKS:
            return f"{self} is too precise to be counted: use a rate with fewer digits, or a smaller burst"
        return None

    def charge(self, rule: str, cost: float) -> BucketCharge | None:
        """Return the charge for a call; None if it exceeds the burst."""
        leak, unit = self._ticks
        amount, capacity = _thousandths(cost), floor(_exact(self.burst) * _THOUSANDTHS)
        if amount > capacity:
            return None
        return BucketCharge(rule, amount * unit, capacity * unit, leak, f"{leak}/{unit}")

    @property
    def _ticks(self) -> tuple[int, int]:
        """The number of ticks per microsecond and per thousandth of a cost."""
        return (self.rate * _THOUSANDTHS / _MICROSECONDS).as_integer_ratio()

    def __str__(self) -> str:
        return f"{self.per_second:.15g} per second, {self.burst:.15g} at once"


class WindowLimit(msgspec.Struct, frozen=True):
    """A limit per minute, hour or day."""

    limit: float
    window: Window

    def fault(self) -> str | None:
        """Describe what is wrong with these numbers; None if they are valid."""
        if not 0 < self.limit <= _MAX_TICKS / _THOUSANDTHS:
            return f"its limit must be above 0 and at most {_MAX_TICKS // _THOUSANDTHS}"
        return None

    def charge(self, rule: str, cost: float) -> WindowCharge | None:
        """Return the charge for a call; None if it exceeds the limit."""
        amount, capacity = _thousandths(cost), floor(_exact(self.limit) * _THOUSANDTHS)
        if amount > capacity:
            return None
        return WindowCharge(rule, amount, capacity, _WINDOW_SECONDS[self.window] * _MICROSECONDS, self.window)

    def __str__(self) -> str:
        return f"{self.limit:.15g} per {self.window}"


class QuotaRule(msgspec.Struct, frozen=True):
    """A limit, the features that it applies to, and what it counts separately."""

    name: str
    limit: RateLimit | WindowLimit
    per: frozenset[Dimension] = frozenset()
    """What is counted separately. If empty, everything is counted together."""
    tools: tuple[str, ...] = ()
    """Names of features, with the wildcards `*` and `?`. If empty, all features."""
    toolsets: tuple[str, ...] = ()
    """Tool sets, including nested ones. If empty, all features."""
    kinds: frozenset[Kind] = frozenset()
    """Kinds of features. If empty, all kinds, or only tools if `tools` is not empty."""
    counts: Counted = "calls"
    """What is counted. A rule for requests applies to all of them."""

    def concerns(self, spec: FeatureSpec) -> bool:
        """Whether the rule applies to calls of a feature."""
        if self.counts == "requests":
            return False
        kinds = self.kinds or (frozenset({"tool"}) if self.tools else None)
        if kinds is not None and spec.kind not in kinds:
            return False
        folded = spec.name.casefold()
        if self.tools and not any(name_matches(folded, pattern.casefold()) for pattern in self.tools):
            return False
        return not self.toolsets or (spec.toolset is not None and is_within_toolset(spec.toolset, self.toolsets))

    def charge(self, spec: FeatureSpec) -> Charge:
        """Return the charge for a call of a feature.

        Raises:
            ConfigurationError: if the limit is lower than the cost of one call.
        """
        cost = spec.feature.cost
        charge = self.limit.charge(self.name, cost)
        if charge is None:
            raise ConfigurationError(
                f"{spec.kind.title()} {spec.name!r} costs {cost:g}, more than quotas.rules.{self.name} ever allows "
                f"({self.limit}): raise the limit or lower the cost"
            )
        return charge

    def charge_of_request(self) -> Charge:
        """Return the charge for a request.

        Raises:
            ConfigurationError: if the limit is lower than one request.
        """
        charge = self.limit.charge(self.name, 1.0)
        if charge is None:
            raise ConfigurationError(
                f"Setting quotas.rules.{self.name}: {self.limit} never allows a request: raise it to at least 1"
            )
        return charge


def _exact(number: float) -> Fraction:
    """Convert the decimal representation of a number, so that 0.1 is exactly a tenth."""
    return Fraction(repr(number))


def _thousandths(cost: float) -> int:
    return ceil(_exact(cost) * _THOUSANDTHS)
