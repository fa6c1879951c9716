"""Measuring a scenario in interleaved rounds."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from statistics import median, quantiles

from benchmarks.errors import BenchmarkError, NotInstalled
from benchmarks.model import Comparison, Measure, Metric, Row, Sample, Scale, Scenario, Verdict

Samples = dict[str, list[Sample]]
Failures = dict[str, BenchmarkError]


def run_scenario(scenario: Scenario, scale: Scale) -> list[Row]:
    """Open every series, measure all of them round by round, and compare them."""
    failures: Failures = {}
    with ExitStack() as stack:
        measures = _open(scenario, scale, stack, failures)
        samples = _measure(measures, scenario.rounds_at(scale), failures)
    return [
        _row(scenario, metric, series.name, samples, failures)
        for metric in scenario.metrics
        for series in scenario.series
        if series.name in failures or all(metric.key in sample for sample in samples[series.name])
    ]


def _open(scenario: Scenario, scale: Scale, stack: ExitStack, failures: Failures) -> dict[str, Measure]:
    measures: dict[str, Measure] = {}
    for series in scenario.series:
        try:
            measures[series.name] = stack.enter_context(series.open(scale))
        except BenchmarkError as error:
            failures[series.name] = error
    return measures


def _measure(measures: Mapping[str, Measure], rounds: int, failures: Failures) -> Samples:
    """Take one sample per series and round, so that a change in the speed of the machine affects all series."""
    samples: Samples = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            if name in failures:
                continue
            try:
                samples[name].append(measure())
            except BenchmarkError as error:
                failures[name] = error
    return samples


def _row(scenario: Scenario, metric: Metric, name: str, samples: Samples, failures: Failures) -> Row:
    comparison = metric.comparisons.get(name)
    row = Row(
        scenario.name, scenario.group, metric.title, name, metric.unit, target=comparison.target if comparison else ""
    )
    if name in failures:
        verdict: Verdict = "absent" if isinstance(failures[name], NotInstalled) else "failed"
        return replace(row, verdict=verdict, note=str(failures[name]))
    values = _values(samples, name, metric)
    row = replace(row, value=median(values), samples=values)
    if comparison is None or comparison.baseline in failures:
        return row
    return _compared(row, comparison, _values(samples, comparison.baseline, metric))


def _values(samples: Samples, name: str, metric: Metric) -> tuple[float, ...]:
    return tuple(sample[metric.key] for sample in samples[name])


def _compared(row: Row, comparison: Comparison, base: tuple[float, ...]) -> Row:
    """Use the median of the ratios within each round: a slow round affects both sides of its ratio."""
    ratios = [value / baseline for value, baseline in zip(row.samples, base, strict=True)]
    low, ratio, high = quantiles(ratios, n=4, method="inclusive")
    verdict: Verdict = ""
    if comparison.target:
        verdict = "ok" if comparison.met(ratio) else "miss"
    return replace(row, baseline=comparison.baseline, ratio=ratio, spread=(low, high), verdict=verdict)
