"""What the page about observability shows is what the code has; `python -m tests.docs` writes the table again."""

import re

import pytest

from axolotl_server.observation.metrics import BUCKETS, METRICS
from axolotl_server.settings.server import LogSettings, MetricsSettings, TelemetrySettings
from tests.docs.metrics import metrics_table
from tests.docs.pages import EXAMPLES, read_page, region_of

PAGE = "docs/operate/observability.md"


def test_metrics() -> None:
    """The table has every metric, with its type, its labels and its meaning."""
    assert region_of(read_page(PAGE), "metrics") == metrics_table()


def test_buckets() -> None:
    """The bounds that the page names are those of the histograms."""
    page = read_page(PAGE)
    named = re.search(r"end\s+at (.+) milliseconds, and\s+at (.+) seconds", page)
    assert named is not None
    milliseconds, seconds = ([float(number) for number in re.findall(r"\d+", part)] for part in named.groups())
    assert [*(number / 1000 for number in milliseconds), *seconds] == list(BUCKETS)


def test_alerts() -> None:
    """The alerts ask for metrics and labels that there are."""
    text = (EXAMPLES / "observed" / "alerts.yml").read_text(encoding="utf-8")
    known: dict[str, set[str]] = {}
    for metric in METRICS:
        suffixes = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}[metric.kind]
        for suffix in suffixes:
            known[metric.prometheus_name + suffix] = {*metric.prometheus_labels, "le"}
    asked = re.findall(r"\b((?:axolotl|mcp)_\w+)(?:\{(\w+)=)?", text)
    assert asked
    for name, label in asked:
        assert name in known
        assert not label or label in known[name]


@pytest.mark.parametrize(
    ("section", "settings"), [("log", LogSettings), ("metrics", MetricsSettings), ("telemetry", TelemetrySettings)]
)
def test_settings(section: str, settings: type) -> None:
    """Every setting is on the page, and none that is not there."""
    named = set(re.findall(rf"`{section}\.(\w+)", read_page(PAGE)))
    assert named == set(settings.model_fields)  # type: ignore[attr-defined]
