"""The tasks of a process: so many at once, each for a limited time."""

import asyncio
import time
from collections.abc import Callable, Iterator

from axolotl_core.errors import InvalidParams, Overloaded
from axolotl_server.settings import TaskSettings
from axolotl_server.tasks.task import Owner, Task

__all__ = ["TaskStore"]


class TaskStore:
    """Keeps tasks until their time is up."""

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        self._tasks: dict[str, Task] = {}

    def create(self, owner: Owner, ttl_seconds: float | None, on_change: Callable[[Task], object]) -> Task:
        """Begin a task; it lives as long as was asked for, and no longer than the settings allow.

        Raises:
            Overloaded: if there are too many.
        """
        self._drop_expired()
        if len(self._tasks) >= self._settings.maximum:
            raise Overloaded("Too many tasks are kept; try again later", self._settings.poll_interval_seconds)
        longest = self._settings.ttl_seconds
        task = Task(owner, longest if ttl_seconds is None else min(ttl_seconds, longest), on_change)
        self._tasks[task.id] = task
        asyncio.get_running_loop().call_later(task.ttl_seconds, self._drop_expired)
        return task

    def find(self, task_id: str, owner: Owner) -> Task:
        """Find a task of this owner.

        Raises:
            InvalidParams: if there is none.
        """
        task = self._tasks.get(task_id)
        if task is None or task.owner != owner or task.expires <= time.monotonic():
            raise InvalidParams("Task not found: it has expired, or there never was one of that id")
        return task

    def of(self, owner: Owner) -> Iterator[Task]:
        """List the tasks of an owner, the oldest first."""
        now = time.monotonic()
        return (task for task in tuple(self._tasks.values()) if task.owner == owner and task.expires > now)

    def close(self) -> None:
        """Stop everything that runs."""
        for task in tuple(self._tasks.values()):
            task.cancel()
        self._tasks.clear()

    def _drop_expired(self) -> None:
        now = time.monotonic()
        for task in tuple(self._tasks.values()):
            if task.expires <= now:
                del self._tasks[task.id]
                task.cancel()
