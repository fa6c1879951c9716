"""The recorded results and their plots."""

from xml.etree import ElementTree

import pytest

from benchmarks.__main__ import main
from benchmarks.model import Row
from benchmarks.plots import bar_chart
from benchmarks.publication import recorded_results
from benchmarks.scenarios import SCENARIOS

SVG = "{http://www.w3.org/2000/svg}"


def test_all_scenarios_are_recorded() -> None:
    """The record has the results of every scenario, in the group of the scenario."""
    recorded = {(row.scenario, row.group) for row in recorded_results().rows}
    assert recorded == {(scenario.name, scenario.group) for scenario in SCENARIOS}


def test_a_plot_has_everything_as_text() -> None:
    """Bars are proportional to their values; names, values, ratios and verdicts are text."""
    rows = [
        Row("call", "HTTP", "call", "floor", "µs", 40.0),
        Row("call", "HTTP", "call", "axolotl", "µs", 20.0, baseline="floor", ratio=0.5, target="≤ 0.9", verdict="ok"),
        Row("call", "HTTP", "call", "a < b & c", "µs", verdict="absent", note="not installed"),
        Row("rate", "HTTP", "rate", "axolotl", "calls/s", 5.0),
    ]
    image = ElementTree.fromstring(bar_chart("Calls", rows))
    texts = [text.text for text in image.iter(f"{SVG}text")]
    widths = [float(bar.attrib["width"]) for bar in image.iter(f"{SVG}rect")]
    assert texts[:7] == [
        "call, µs (less is better)",
        "floor",
        "40",
        "axolotl",
        "20, 0.5 × floor, ok",
        "a < b & c",
        "not installed",
    ]
    assert texts[7:] == ["rate, calls/s (more is better)", "axolotl", "5"]
    assert widths == [300.0, 150.0, 0.0, 300.0]


def test_a_part_of_the_scenarios_is_not_published(capsys: pytest.CaptureFixture[str]) -> None:
    """Published results come from one run of all scenarios."""
    with pytest.raises(SystemExit) as ended:
        main(["--publish", "--only", "start"])
    assert ended.value.code == 2
    assert "--publish needs all scenarios: remove --only" in capsys.readouterr().err
