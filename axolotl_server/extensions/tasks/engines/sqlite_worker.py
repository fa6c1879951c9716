"""The worker on SQLite: the table of tasks is the queue, and one statement takes tasks from it."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

from axolotl_server.execution.outage_log import OutageLog
from axolotl_server.extensions.tasks.engines.run_statements import RunStatements, StartedRun
from axolotl_server.extensions.tasks.engines.stored_run import IExecution, ITaskDatabase, until_reached
from axolotl_server.extensions.tasks.engines.task_sealing import UnreadableTask
from axolotl_server.extensions.tasks.engines.task_statements import Enqueue, Execute, Operation, parameters
from axolotl_server.settings.calls import TaskSettings

_BATCH: Final = 25
_FULL_SECONDS: Final = 1.0
"""How long a large call waits for others before a worker looks at it again."""

ResultT = TypeVar("ResultT")

_IN_QUEUE: Final = "state in ('queued', 'running')"
"""The condition of the index `tasks_queue`."""

_log: Final = logging.getLogger("axolotl")


class Claim(NamedTuple):
    """What a worker has taken from the queue."""

    runs: Sequence[tuple[StartedRun, int]]
    """The runs that have begun, each with the size of its call if that is large."""
    unreadable: Sequence[tuple[str, UnreadableTask]]
    is_empty: bool


class SqliteStatements(RunStatements):
    """The operations on tasks that are their own places in the queue.

    A task that is queued or runs may be taken as soon as it is due; whoever has it postpones that again and again.
    """

    def is_due(self, tools: Mapping[str, int] | None) -> Operation[bool]:
        """Find out whether there is something to take; a limit may still forbid it."""
        of_tools, names = _of(None if tools is None else tuple(tools), first=2)
        rows = yield Execute(
            f"select 1 from {self.tasks} where {_IN_QUEUE} and due_at <= $1{of_tools} limit 1", (time.time(), *names)
        )
        return bool(rows)

    def claim(self, worker: str, tools: Mapping[str, int] | None, room: int, large_bytes: int) -> Operation[Claim]:
        """Take tasks that are due, and begin their runs, except large calls that do not fit beside those that run."""
        found = yield from self._take(worker, tools, room)
        runs: list[tuple[StartedRun, int]] = []
        unreadable: list[tuple[str, UnreadableTask]] = []
        for task_id in found:
            size = yield from self.size(task_id)
            if size and large_bytes and large_bytes + size > self.max_bytes:
                yield Execute(
                    f"update {self.tasks} set due_at = $2 where id = $1", (task_id, time.time() + _FULL_SECONDS)
                )
                continue
            try:
                started = yield from self.begin(task_id)
            except UnreadableTask as error:
                unreadable.append((task_id, error))
                continue
            except (TypeError, ValueError) as error:
                unreadable.append((task_id, UnreadableTask(f"task {task_id}: it has a value of a wrong type: {error}")))
                continue
            if started is not None:
                large_bytes += size
                runs.append((started, size))
        return Claim(runs, unreadable, is_empty=not found)

    def _take(self, worker: str, tools: Mapping[str, int] | None, room: int) -> Operation[list[str]]:
        """Mark tasks as taken, and return their IDs; those of tools with limits come first."""
        if tools is None:
            return (yield from self._take_of(worker, None, room))
        limited = {tool: limit for tool, limit in tools.items() if limit}
        running: dict[str, int] = {}
        if limited:
            busy = f"select tool, count(*) from {self.tasks} where state = 'running' and due_at > $1 group by tool"
            running = {str(tool): int(count) for tool, count in (yield Execute(busy, (time.time(),)))}
        groups = [((tool,), limit - running.get(tool, 0)) for tool, limit in limited.items()]
        others = tuple(tools.keys() - limited.keys())
        found: list[str] = []
        for names, free in (*groups, (others, room)):
            count = min(free, room - len(found))
            if names and count > 0:
                found += yield from self._take_of(worker, names, count)
        return found

    def _take_of(self, worker: str, tools: Sequence[str] | None, count: int) -> Operation[list[str]]:
        of_tools, names = _of(tools, first=5)
        now = time.time()
        rows = yield Execute(
            f"update {self.tasks} set worker = $1, due_at = $2 where number in (select number from {self.tasks}"
            f" indexed by tasks_queue where {_IN_QUEUE} and due_at <= $3{of_tools}"
            " order by number limit $4) returning number, id",
            (worker, now + self._lease_seconds, now, count, *names),
        )
        return [task_id for _, task_id in sorted(map(tuple, rows))]

    def postpone(self, worker: str, task_ids: Sequence[str]) -> Operation[None]:
        """Note that a worker still runs tasks."""
        marks, ids = parameters(task_ids, first=3)
        yield Execute(
            f"update {self.tasks} set due_at = $1 where worker = $2 and state = 'running' and id in ({marks})",
            (time.time() + self._lease_seconds, worker, *ids),
        )

    def _leave(self, started: StartedRun) -> Operation[None]:
        yield Execute(f"update {self.tasks} set due_at = 0 where id = $1", (started.task.id,))
        yield Enqueue(started.task.tool, started.task.id)  # the limit of its tool may have a free place now


def _of(tools: Sequence[str] | None, first: int) -> tuple[str, Sequence[str]]:
    """Write the condition that a task is of some tools; None means any."""
    if tools is None:
        return "", ()
    marks, names = parameters(tools, first)
    return f" and tool in ({marks})", names


class SqliteWorker:
    """Takes as many tasks as there is room for, whenever the queue has changed."""

    def __init__(
        self,
        database: ITaskDatabase,
        statements: SqliteStatements,
        settings: TaskSettings,
        *,
        execution: IExecution,
        tools: Mapping[str, int] | None,
    ) -> None:
        """Take the tasks of some tools; None means all, without limits."""
        self._database = database
        self._statements = statements
        self._settings = settings
        self._execution = execution
        self._tools = tools
        self._poll_seconds = min(database.poll_seconds, settings.lease_seconds / 2)
        self._name = secrets.token_hex(8)
        self._running: dict[asyncio.Task[None], str] = {}
        """What it executes, with the IDs of the tasks."""
        self._large_bytes = 0
        """The size of the large calls among them."""
        self._is_busy = False
        """Whether there were tasks when it looked last."""
        self._stops = False
        self._wake = asyncio.Event()
        self._outages = OutageLog("The queue of tasks", "attempts that failed")

    def wake(self) -> None:
        """Look at the queue now."""
        self._wake.set()

    def stop(self) -> None:
        self._stops = True
        self._wake.set()

    async def work(self) -> None:
        postponing = asyncio.ensure_future(self._postpone())
        try:
            while not self._stops:
                self._wake.clear()
                if not await self.take():
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._wake.wait(), self._poll_seconds)
        finally:
            try:
                await asyncio.gather(*self._running, return_exceptions=True)
            finally:
                postponing.cancel()

    async def take(self) -> bool:
        """Take tasks, and begin to execute them; return False if there are none, or there is no room for more."""
        room = min(_BATCH, self._settings.concurrency - len(self._running))
        if self._stops or room <= 0 or self._tools == {}:
            return False
        # An idle worker only reads, because others could not write in the meantime.
        if not self._is_busy and not await self._retried(lambda: self._statements.is_due(self._tools), writes=False):
            return False
        claim = await self._retried(lambda: self._statements.claim(self._name, self._tools, room, self._large_bytes))
        self._is_busy = not claim.is_empty
        for started, size in claim.runs:
            self._large_bytes += size
            running = asyncio.ensure_future(self._run(started, size))
            self._running[running] = started.task.id
            running.add_done_callback(self._ended)
        for task_id, error in claim.unreadable:
            try:
                await self._execution.end_unreadable(task_id, error)
            except Exception:  # the next tasks are taken nevertheless
                _log.exception("task %s cannot be ended", task_id)
        return self._is_busy

    async def _run(self, started: StartedRun, size: int) -> None:
        try:
            await asyncio.sleep(0)  # so that its task is known before it runs, also if the loop starts tasks at once
            await self._execution.run_started(started)
        except Exception:  # others may take it over
            _log.exception("task %s was not executed to its end", started.task.id)
        finally:
            self._large_bytes -= size

    def _ended(self, running: "asyncio.Task[None]") -> None:
        del self._running[running]
        self._wake.set()

    async def _postpone(self) -> None:
        """Say now and then that the runs of this worker are alive."""
        while True:
            await asyncio.sleep(self._settings.lease_seconds / 3)
            if self._running:
                await self._execution.execute_with_retry(
                    lambda: self._statements.postpone(self._name, tuple(set(self._running.values()))), atomic=False
                )

    async def _retried(self, make: Callable[[], Operation[ResultT]], *, writes: bool = True) -> ResultT:
        """Execute an operation, again and again until the file can be used."""
        return await until_reached(lambda: self._database.execute(make(), writes=writes), self._outages)
