"""Assembly of the tasks of a server: its engine, and the service around it."""

from typing import TYPE_CHECKING

from axolotl_core.task_engine import ITaskEngine
from axolotl_server.settings.calls import TaskSettings
from axolotl_server.settings.server import ServerSettings
from axolotl_server.tasks.memory_engine import MemoryTaskEngine
from axolotl_server.tasks.task_service import TaskService

if TYPE_CHECKING:
    from axolotl_server.hosting.assembly import ServerAssembly


def make_tasks(settings: ServerSettings, given: ITaskEngine | None, assembly: "ServerAssembly") -> TaskService:
    """Make the tasks of a server, on the engine of the container or the one that the settings choose."""
    return TaskService(
        make_engine(settings.tasks) if given is None else given,
        settings.tasks,
        assembly.tool_methods,
        era_of=lambda revision: assembly.eras.named(revision),  # noqa: PLW0108 - the eras are made later
        deadlines=assembly.deadlines,
        ask_timeout_seconds=settings.limits.ask_timeout_seconds,
    )


def make_engine(settings: TaskSettings) -> ITaskEngine:
    """Make the engine that the settings choose."""
    return MemoryTaskEngine(settings)
