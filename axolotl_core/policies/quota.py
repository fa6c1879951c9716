"""How much callers may use: the rules, and the port of the store that keeps count."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import Final, Literal, NamedTuple, TypeAlias

from axolotl_core.errors import AxolotlError, ConfigurationError
from axolotl_core.features.feature import Kind
from axolotl_core.features.spec import FeatureSpec

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


Dimension: TypeAlias = Literal["principal", "tenant", "tool", "toolset"]
"""What a rule counts apart."""
Window: TypeAlias = Literal["minute", "hour", "day"]
"""A stretch of the calendar, in UTC."""
Claim: TypeAlias = tuple[str, Charge]
"""A key, and what is to be taken under it."""

_THOUSANDTHS: Final = 1000
_MICROSECONDS: Final = 1_000_000
_FINEST_RATE: Final = 1_000_000
_MOST_TICKS: Final = 2**52
_WINDOW_SECONDS: Final[Mapping[Window, int]] = {"minute": 60, "hour": 3600, "day": 86_400}


class QuotaStoreError(AxolotlError):
    """A store cannot keep count for now; the text is for the log and holds no secret."""


class QuotaRefusal(NamedTuple):
    """Which rule stands against a call, and when the same call could pass if nobody else took anything."""

    rule: str
    retry_after_microseconds: int


class IQuotaStore(ABC):
    """Keeps count of what was taken, by keys that the server makes."""

    @abstractmethod
    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        """Take all claims of a call at once, or none; of several rules against it, tell the one to wait longest for.

        The keys of a call differ from each other. What is kept under a key may be forgotten from the end on that its
        charge tells, and before that only for want of room.

        Raises:
            QuotaStoreError: if the store is away; whether the call may pass then is not the store's to say.
        """

    async def close(self) -> None:
        """Let go of connections."""
        return


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A token bucket: so much at once, and so much a second."""

    per_second: float
    burst: float

    @property
    def rate(self) -> Fraction:
        """The rate as it is counted, exact to six decimals."""
        rate = _exact(self.per_second)
        return rate.limit_denominator(_FINEST_RATE) if rate >= 1 else 1 / (1 / rate).limit_denominator(_FINEST_RATE)

    def fault(self) -> str | None:
        """Say why nothing can be counted with these numbers, if so."""
        if not (isfinite(self.per_second) and isfinite(self.burst) and self.per_second > 0 and self.burst > 0):
            return "its rate and its burst must be above 0"
        if floor(_exact(self.burst) * _THOUSANDTHS) * self._ticks[1] > _MOST_TICKS:
            return f"{self} cannot be counted: choose a rate with fewer digits, or a smaller burst"
        return None

    def charge(self, rule: str, cost: float) -> BucketCharge | None:
        """Say what a call takes; None if it takes more than there can ever be."""
        leak, unit = self._ticks
        amount, capacity = _counted(cost), floor(_exact(self.burst) * _THOUSANDTHS)
        if amount > capacity:
            return None
        return BucketCharge(rule, amount * unit, capacity * unit, leak, f"{leak}/{unit}")

    @property
    def _ticks(self) -> tuple[int, int]:
        """How many ticks a microsecond and a thousandth of a cost have."""
        return (self.rate * _THOUSANDTHS / _MICROSECONDS).as_integer_ratio()

    def __str__(self) -> str:
        return f"{self.per_second:.15g} per second, {self.burst:.15g} at once"


@dataclass(frozen=True, slots=True)
class WindowLimit:
    """A quota: so much in each minute, hour or day."""

    limit: float
    window: Window

    def fault(self) -> str | None:
        """Say why nothing can be counted with these numbers, if so."""
        if not 0 < self.limit <= _MOST_TICKS / _THOUSANDTHS:
            return "its limit must be above 0 and a number that can be counted"
        return None

    def charge(self, rule: str, cost: float) -> WindowCharge | None:
        """Say what a call takes; None if it takes more than there ever is."""
        amount, capacity = _counted(cost), floor(_exact(self.limit) * _THOUSANDTHS)
        if amount > capacity:
            return None
        return WindowCharge(rule, amount, capacity, _WINDOW_SECONDS[self.window] * _MICROSECONDS, self.window)

    def __str__(self) -> str:
        return f"{self.limit:.15g} per {self.window}"


@dataclass(frozen=True, slots=True)
class QuotaRule:
    """A limit, what it is for, and what it counts apart."""

    name: str
    limit: RateLimit | WindowLimit
    per: frozenset[Dimension] = frozenset()
    """What has a count of its own; all share one where this is empty."""
    tools: tuple[str, ...] = ()
    """Names of features, `*` and `?` stand for anything; all where this is empty."""
    toolsets: tuple[str, ...] = ()
    """Tool sets, with the sets inside of them; everything where this is empty."""
    kinds: frozenset[Kind] = frozenset()
    """All kinds where this is empty, but tools alone where `tools` names some."""

    def concerns(self, spec: FeatureSpec) -> bool:
        """Tell whether calls of a feature count."""
        kinds = self.kinds or (frozenset({"tool"}) if self.tools else None)
        if kinds is not None and spec.kind not in kinds:
            return False
        return self._names(spec.name) and self._holds(spec.toolset)

    def _names(self, name: str) -> bool:
        folded = name.casefold()
        return not self.tools or any(fnmatchcase(folded, pattern.casefold()) for pattern in self.tools)

    def _holds(self, toolset: str | None) -> bool:
        if not self.toolsets:
            return True
        return toolset is not None and any(f"{toolset}.".startswith(f"{name}.") for name in self.toolsets)

    def charge(self, spec: FeatureSpec) -> Charge:
        """Say what a call of a feature takes.

        Raises:
            ConfigurationError: if no call could ever pass.
        """
        cost = spec.feature.cost
        charge = self.limit.charge(self.name, cost)
        if charge is None:
            raise ConfigurationError(
                f"{spec.kind.title()} {spec.name!r} costs {cost:g}, more than quotas.rules.{self.name} ever allows "
                f"({self.limit}): raise the limit or lower the cost"
            )
        return charge


def _exact(number: float) -> Fraction:
    """Take a number as it is written, so that 0.1 is a tenth."""
    return Fraction(repr(number))


def _counted(cost: float) -> int:
    return ceil(_exact(cost) * _THOUSANDTHS)
