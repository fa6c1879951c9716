"""The vocabulary of a benchmark: scenarios, series, metrics, targets and rows."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal

Sample = Mapping[str, float]
"""One round's values of one series, by metric key."""

Measure = Callable[[], Sample]
"""Run one round and return its sample."""

Verdict = Literal["ok", "miss", "absent", "failed", ""]


@dataclass(frozen=True)
class Scale:
    """Say how much work a run does; a spread needs two rounds at least."""

    rounds: int
    share: float

    def calls(self, count: int) -> int:
        """Return the share of a full run's calls, at least sixteen."""
        return max(16, round(count * self.share))


FULL = Scale(rounds=15, share=1.0)
QUICK = Scale(rounds=2, share=0.05)


@dataclass(frozen=True)
class Comparison:
    """Relate a series to a baseline, with a bound on the ratio where there is a target."""

    baseline: str
    at_most: float | None = None
    at_least: float | None = None

    def met(self, ratio: float) -> bool:
        """Tell whether a ratio keeps the bounds."""
        above = self.at_least is None or ratio >= self.at_least
        below = self.at_most is None or ratio <= self.at_most
        return above and below

    @property
    def target(self) -> str:
        """Return the bound in words, or nothing if there is none."""
        if self.at_most is not None:
            return f"≤ {self.at_most:.3g} × {self.baseline}"
        if self.at_least is not None:
            return f"≥ {self.at_least:.3g} × {self.baseline}"
        return ""


@dataclass(frozen=True)
class Metric:
    """Name one value of a scenario's samples and what it is compared with, by series."""

    key: str
    title: str
    unit: str
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """Name something to measure and how to open it; opening starts and warms a server."""

    name: str
    open: Callable[[Scale], AbstractContextManager[Measure]]


@dataclass(frozen=True)
class Scenario:
    """Group the series that are measured side by side, round by round."""

    name: str
    summary: str
    metrics: tuple[Metric, ...]
    series: tuple[Series, ...]
    rounds: int | None = None

    def rounds_at(self, scale: Scale) -> int:
        """Return the number of rounds, which slow scenarios cap."""
        return scale.rounds if self.rounds is None else min(self.rounds, scale.rounds)


@dataclass(frozen=True)
class Row:
    """Hold one line of the result table; the spread is the middle half of the rounds' ratios."""

    scenario: str
    metric: str
    contender: str
    unit: str
    value: float | None = None
    samples: tuple[float, ...] = ()
    baseline: str = ""
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    target: str = ""
    verdict: Verdict = ""
    note: str = ""
