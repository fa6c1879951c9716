"""The tasks of a process: so many at once, each for a limited time."""

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InvalidParams, Overloaded
from axolotl_server.settings import TaskSettings
from axolotl_server.tasks.task import Owner, Task

__all__ = ["TaskStore"]

_STOP_GRACE_SECONDS = 1.0


class TaskStore:
    """Keeps tasks until their time is up."""

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        self._next_number = itertools.count(1).__next__
        self._tasks: dict[str, Task] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def kept(self) -> int:
        """How many tasks there are, those that have ended included."""
        return len(self._tasks)

    def create(self, owner: Owner, ttl_seconds: float | None, on_change: Callable[[Task], object]) -> Task:
        """Begin a task; it lives as long as was asked for, and no longer than the settings allow.

        Raises:
            Overloaded: if there are too many, or if the server stops.
        """
        if self._closed:
            raise Overloaded("The server is shutting down; try again", self._settings.poll_interval_seconds)
        if len(self._tasks) >= self._settings.maximum:
            raise Overloaded("Too many tasks are kept; try again later", self._settings.poll_interval_seconds)
        longest = self._settings.ttl_seconds
        ttl_seconds = longest if ttl_seconds is None else min(ttl_seconds, longest)
        task = Task(owner, self._next_number(), ttl_seconds, on_change)
        self._tasks[task.id] = task
        self._expire_later(task)
        return task

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work of a task, on its own."""
        running = asyncio.get_running_loop().create_task(work)
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    def find(self, task_id: str, owner: Owner) -> Task:
        """Find a task of this owner.

        Raises:
            InvalidParams: if there is none.
        """
        task = self._tasks.get(task_id)
        if task is None or task.owner != owner or task.expires <= time.monotonic():
            raise InvalidParams("Task not found: it has expired, or there never was one of that id")
        return task

    def of(self, owner: Owner, after: int = 0) -> Iterator[Task]:
        """List the tasks of an owner, the oldest first, after the one of a number."""
        now = time.monotonic()
        for task in tuple(self._tasks.values()):
            if task.number > after and task.owner == owner and task.expires > now:
                yield task

    async def close(self) -> None:
        """Take no more tasks, and stop everything that runs; its code has a moment to end, once."""
        again, self._closed = self._closed, True
        for task_id in tuple(self._tasks):
            self._drop(task_id, CancelReason.SHUTDOWN)
        if self._running and not again:
            await asyncio.wait(self._running, timeout=_STOP_GRACE_SECONDS)

    def _expire_later(self, task: Task) -> None:
        seconds = max(0.0, task.expires - time.monotonic())
        self._timers[task.id] = asyncio.get_running_loop().call_later(seconds, self._expire, task)

    def _expire(self, task: Task) -> None:
        """Drop a task whose time has come; a timer may be early, as its loop has a clock of its own."""
        if task.expires > time.monotonic():
            self._expire_later(task)
        else:
            self._drop(task.id, CancelReason.TIMEOUT)

    def _drop(self, task_id: str, reason: CancelReason) -> None:
        self._timers.pop(task_id).cancel()
        self._tasks.pop(task_id).cancel(reason)
