"""The table of all metrics, generated from the code."""

from axolotl_server.extensions.tasks.task_telemetry import TASK_METRICS
from axolotl_server.observation.metrics import METRICS, Metric
from tests.support.docs.tables import table


def metrics_table() -> str:
    """List every metric with its Prometheus name, labels and meaning."""
    columns = ("Name", "Prometheus", "Type", "Labels", "Meaning")
    return table(columns, [_row(metric) for metric in (*METRICS, *TASK_METRICS)])


def _row(metric: Metric) -> tuple[str, ...]:
    suffix = "_total" if metric.kind == "counter" else ""
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "–"
    meaning = metric.description[0].lower() + metric.description[1:]
    return f"`{metric.name}`", f"`{metric.prometheus_name}{suffix}`", metric.kind, labels, meaning
