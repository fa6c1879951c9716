"""Assembly of the tasks of a server: its engine, and the service around it."""

from functools import partial
from typing import TYPE_CHECKING

from axolotl_core.task_engine import ITaskEngine
from axolotl_server.calls.binding import Binder
from axolotl_server.settings.server import ServerSettings
from axolotl_server.task_engines.assembly import make_engine
from axolotl_server.tasks.task_layers import TaskLayers, run_layers
from axolotl_server.tasks.task_runner import task_of, waiting_run
from axolotl_server.tasks.task_service import TaskService

if TYPE_CHECKING:
    from axolotl_server.hosting.assembly import ServerAssembly


def make_tasks(settings: ServerSettings, given: ITaskEngine | None, assembly: "ServerAssembly") -> TaskService:
    """Make the tasks of a server, on the engine of the container or the one that the settings choose."""
    engine = make_engine(settings) if given is None else given
    return TaskService(
        engine,
        settings.tasks,
        assembly.tool_methods,
        era_of=lambda revision: assembly.eras.named(revision),  # noqa: PLW0108 - the eras are made later
        deadlines=assembly.deadlines,
        ask_timeout_seconds=settings.limits.ask_timeout_seconds,
        catalogue=assembly.tools,
        inflight=assembly.inflight,
        task_layers=_task_layers(assembly, is_queued=engine.durable),
        decisions=None if assembly.audit is None else assembly.audit.decisions,
    )


def _task_layers(assembly: "ServerAssembly", *, is_queued: bool) -> TaskLayers:
    waiting = partial(waiting_run, assembly.deadlines) if is_queued else None
    layers = run_layers(assembly.layers, task_of, waiting)
    binder = Binder(assembly.settings, layers, assembly.runners, assembly.toolsets)
    return TaskLayers(assembly.layers, binder)
