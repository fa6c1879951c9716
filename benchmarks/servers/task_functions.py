"""A tool that runs as a task and returns when it began."""

import time

from dependency_injector import containers, providers

from axolotl_core import tool


@tool(task_support="required", task_restart="resume")
async def begun() -> float:
    """Return the time."""
    return time.time()


class Container(containers.DeclarativeContainer):
    """The container."""

    tools = providers.List(providers.Object(begun))
