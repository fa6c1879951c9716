"""The page about observability matches the code."""

import logging
import re

import pytest

from axolotl_server.extensions.tasks.task_telemetry import TASK_METRICS
from axolotl_server.observation.metrics import BUCKETS, METRICS
from axolotl_server.observation.tracebacks import TracebackLimit
from axolotl_server.settings.server import LogSettings, MetricsSettings, TelemetrySettings
from tests.support.docs.pages import EXAMPLES, ROOT, read_page

PAGE = "docs/operate/observability.md"


def test_buckets() -> None:
    """The page lists the histogram buckets."""
    page = read_page(PAGE)
    named = re.search(r"buckets:\s+(.+) ms,\s+(.+) s\b", page)
    assert named is not None
    milliseconds, seconds = ([float(number) for number in re.findall(r"\d+", part)] for part in named.groups())
    assert [*(number / 1000 for number in milliseconds), *seconds] == list(BUCKETS)


def test_span_attributes() -> None:
    """The page lists attributes that spans have."""
    section = read_page(PAGE).partition("## Traces")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "axolotl_server/observation").glob("*.py"))
    assert len(listed) > 10
    assert {name for name in listed if f'"{name}"' not in code} == set()


def test_repeated_failures() -> None:
    """The page shows how a failure is logged without its traceback."""
    tracebacks, error = TracebackLimit(), ConnectionError()
    failure = "tool charge failed, reference 9076e29508709f3d"
    record = logging.LogRecord("axolotl", logging.ERROR, "", 0, failure, (), (ConnectionError, error, None))
    texts = [tracebacks.apply(record).getMessage() for _ in range(18)]
    assert f"```text\n{texts[-1]}\n```" in read_page(PAGE)


def test_alerts() -> None:
    """The alerts use existing metrics and labels."""
    text = (EXAMPLES / "observed" / "alerts.yml").read_text(encoding="utf-8")
    known: dict[str, set[str]] = {}
    for metric in (*METRICS, *TASK_METRICS):
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
    """The page names every setting of these sections, and no others."""
    named = set(re.findall(rf"`{section}\.(\w+)", read_page(PAGE)))
    assert named == set(settings.model_fields)  # type: ignore[attr-defined]
