"""What the telemetry of a server shows about its tasks: the metrics, and where the spans of their runs go."""

import time
from typing import TYPE_CHECKING, Final

from axolotl_core.task_engine import TaskRecord
from axolotl_server.observation.metrics import UNKNOWN, Counter, Metric

if TYPE_CHECKING:
    from axolotl_server.extensions.tasks.task_service import TaskService
    from axolotl_server.observation.observation import Observation

_WAIT: Final = "axolotl.task.wait"
_RUN: Final = "axolotl.task.run"
_RUNS: Final = "axolotl.task.runs"
TASK_METRICS: Final = (
    Metric(_WAIT, "histogram", "s", "Time from the submission of tasks to the start of their first run", ("tool",)),
    Metric(_RUN, "histogram", "s", "Duration of the runs of tasks", ("tool",)),
    Metric("axolotl.tasks", "gauge", "{task}", "Stored tasks, running or ended"),
    Metric("axolotl.tasks.open", "gauge", "{task}", "Tasks that have not ended", ("tool", "status")),
    Metric("axolotl.tasks.parked", "gauge", "{task}", "Tasks that wait for an answer without using a worker"),
    Metric("axolotl.tasks.unclaimed", "gauge", "{task}", "Tasks that no worker began within `tasks.lease_seconds`"),
    Metric("axolotl.tasks.lost", "counter", "{run}", "Runs whose worker was lost, found by this process"),
    Metric(_RUNS, "counter", "{run}", "Runs of tasks that have ended, by outcome", ("tool", "outcome")),
)
"""The metrics of a server with tasks."""


def observe_tasks(service: "TaskService", observation: "Observation") -> None:
    """Let the metrics read the numbers of tasks, count their runs, and trace them."""
    values, engine, runs = observation.values, service.engine, Counter()
    for metric in TASK_METRICS:
        values.add(metric)
    waits, durations = values.histograms[_WAIT], values.histograms[_RUN]

    def run_ended(task: TaskRecord, ending: str, seconds: float) -> None:
        runs.add((task.tool, ending))
        durations.series((task.tool,)).record(seconds)
        if task.run == 1:
            submitted = task.expires_at - task.ttl_seconds
            waits.series((task.tool,)).record(max(0.0, time.time() - seconds - submitted))

    values.add_reader(_RUNS, runs.read)
    values.add_number("axolotl.tasks", lambda: engine.kept)
    values.add_number("axolotl.tasks.parked", lambda: engine.counts.parked)
    values.add_number("axolotl.tasks.unclaimed", lambda: engine.counts.unclaimed)
    values.add_number("axolotl.tasks.lost", lambda: engine.counts.lost)
    values.add_reader(
        "axolotl.tasks.open",
        lambda: [((tool or UNKNOWN, status), count) for (tool, status), count in service.count_open().items()],
    )
    service.runner.run_ended = run_ended
    service.runner.spans = observation.spans
