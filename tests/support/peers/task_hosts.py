"""Hosts with tasks."""

from axolotl_server.extensions.tasks.extension import Tasks
from axolotl_server.extensions.tasks.task_service import TaskService
from axolotl_server.host import ServerHost


def service_of(host: ServerHost) -> TaskService:
    """Return the tasks of a server."""
    found = host.extension(Tasks)
    assert found is not None
    return found.service


async def serve_tasks(host: ServerHost, *, works: bool) -> None:
    """Begin to serve, and say whether tasks run here, which needs no tool with tasks."""
    found = host.extension(Tasks)
    if found is not None:
        found.works = works
    await host.begin()
