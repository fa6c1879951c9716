"""Every benchmark still runs, with as few calls as possible and only for this project's servers."""

from contextlib import ExitStack
from typing import Final

import pytest

from benchmarks.model import Scale, Scenario, Series
from benchmarks.scenarios import SCENARIOS
from benchmarks.servers.floor_variants import KEEP_ALIVE_SECONDS

SMALLEST: Final = Scale(rounds=2, share=0.001)
LASTING: Final = {
    "idle streams": f"waits for {KEEP_ALIVE_SECONDS} seconds",
    "overload": "offers load for seconds",
    "deadline": "waits for deadlines",
}
OTHERS: Final = ("floor", "mcp", "fastmcp", "goal", "grep")


def own_series(scenario: Scenario) -> list[Series]:
    """Return the series that measure this project, one per scenario, except for layers, of which each can break."""
    own = [one for one in scenario.series if not one.name.startswith(OTHERS)]
    if scenario.group != "layers":
        return own[:1]
    return [one for one in own if "Redis" not in one.name and "process" not in one.name]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one.name not in LASTING], ids=lambda one: one.name)
def test_the_scenario_runs(scenario: Scenario) -> None:
    """A round gives a value for each metric."""
    with ExitStack() as stack:
        opened = [stack.enter_context(series.open(SMALLEST)) for series in own_series(scenario)]
        samples = [measure() for measure in opened]
    assert samples
    for sample in samples:
        assert {metric.key for metric in scenario.metrics} <= sample.keys()
        assert min(sample.values()) >= 0


def test_what_is_left_out_exists() -> None:
    """Each scenario that takes too long for a test is still one."""
    assert LASTING.keys() <= {scenario.name for scenario in SCENARIOS}
