"""What the telemetry of a server shows about its tasks."""

from axolotl_server.extensions.tasks.task_service import TaskService
from axolotl_server.observation.metrics import UNKNOWN, unlabeled
from axolotl_server.observation.observation import Observation


def observe_tasks(service: TaskService, observation: Observation) -> None:
    """Let the metrics read the numbers of tasks, count their runs, and trace them."""
    values, engine = observation.values, service.engine
    values.add_reader("axolotl.tasks", unlabeled(lambda: service.kept))
    values.add_reader("axolotl.tasks.parked", unlabeled(lambda: engine.counts.parked))
    values.add_reader("axolotl.tasks.unclaimed", unlabeled(lambda: engine.counts.unclaimed))
    values.add_reader("axolotl.tasks.lost", unlabeled(lambda: engine.counts.lost))
    values.add_reader(
        "axolotl.tasks.open",
        lambda: [((tool or UNKNOWN, status), count) for (tool, status), count in service.count_open().items()],
    )
    service.runner.run_ended = values.task_ran
    service.runner.tracing = observation.spans
