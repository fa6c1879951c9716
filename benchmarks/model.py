"""The terms of a benchmark: scenarios, series, metrics, targets and rows."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Literal

Sample = Mapping[str, float]
"""The values of one series in one round, by metric key. A key is absent if the metric does not apply."""

Measure = Callable[[], Sample]
"""Runs one round and returns its sample."""

Group = Literal["HTTP", "stdio", "start", "memory", "streams", "layers", "growth", "workers", "overload", "tools"]
"""Scenarios that share a plot."""

Verdict = Literal["ok", "miss", "absent", "failed", ""]


@dataclass(frozen=True)
class Scale:
    """The amount of work in a run. A spread needs at least two rounds."""

    rounds: int
    share: float

    def calls(self, count: int) -> int:
        """Scale a number of calls; the minimum is 16."""
        return max(16, round(count * self.share))


FULL = Scale(rounds=15, share=1.0)
QUICK = Scale(rounds=2, share=0.05)


@dataclass(frozen=True)
class Comparison:
    """The baseline of a series, and a bound on the ratio if there is a target."""

    baseline: str
    at_most: float | None = None
    at_least: float | None = None

    def met(self, ratio: float) -> bool:
        """Return whether a ratio is within the bounds."""
        above = self.at_least is None or ratio >= self.at_least
        below = self.at_most is None or ratio <= self.at_most
        return above and below

    @property
    def target(self) -> str:
        """Return the bound as text, or an empty string."""
        if self.at_most is not None:
            return f"≤ {self.at_most:.3g} × {self.baseline}"
        if self.at_least is not None:
            return f"≥ {self.at_least:.3g} × {self.baseline}"
        return ""


@dataclass(frozen=True)
class Metric:
    """One value of the samples, with the comparison for each series."""

    key: str
    title: str
    unit: str
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """A contender in a scenario. Opening it starts and warms up a server."""

    name: str
    open: Callable[[Scale], AbstractContextManager[Measure]]


def goal(**values: float) -> Series:
    """Return a series of constants, to which measured values are compared."""

    @contextmanager
    def opened(scale: Scale) -> Iterator[Measure]:
        yield lambda: values

    return Series("goal", opened)


@dataclass(frozen=True)
class Scenario:
    """Series that are measured side by side, round by round."""

    name: str
    group: Group
    summary: str
    metrics: tuple[Metric, ...]
    series: tuple[Series, ...]
    rounds: int | None = None

    def rounds_at(self, scale: Scale) -> int:
        """Return the number of rounds; slow scenarios have a maximum."""
        return scale.rounds if self.rounds is None else min(self.rounds, scale.rounds)


@dataclass(frozen=True)
class Row:
    """One line of the result table. The spread is the interquartile range of the ratios."""

    scenario: str
    group: Group
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


@dataclass(frozen=True)
class Results:
    """The rows of a run, with its circumstances."""

    python: str
    machine: str
    load: float
    """The load average before the run."""
    versions: Mapping[str, str | None]
    scale: Scale
    rows: tuple[Row, ...]
