"""The queue of tasks in an SQLite file: a repository and a driver for PgQueuer."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pgqueuer.core.tm import TaskManager
from pgqueuer.domain.models import HealthCheckEvent, Job, TableChangedEvent, TracebackRecord, utc_now
from pgqueuer.domain.settings import DBSettings
from pgqueuer.domain.types import JOB_STATUS, HealthCheckId, JobId, QueueEntrypoint, QueueManagerId
from pgqueuer.ports.driver import Driver
from pgqueuer.ports.repository import EntrypointExecutionParameter

from axolotl_core.task_engine import TasksUnavailable
from axolotl_server.lifecycle.outage_log import OutageLog
from axolotl_server.task_engines.sqlite_thread import Effects

if TYPE_CHECKING:
    from axolotl_server.task_engines.sqlite_tasks import SqliteTasks

_RETRY_SECONDS: Final = (0.05, 0.1, 0.2, 0.5, 1.0)

ResultT = TypeVar("ResultT")

_log: Final = logging.getLogger("axolotl")

JOBS_SCHEMA: Final = """
create table if not exists jobs (
    id integer primary key autoincrement, entrypoint text not null, payload blob not null, created real not null,
    heartbeat real not null, execute_after real not null, status text not null default 'queued', manager text,
    attempts integer not null default 0
);
create index if not exists jobs_by_entrypoint on jobs (status, entrypoint, id);
create index if not exists jobs_by_payload on jobs (payload);
"""


class _Environment:
    """The names of tables, which a queue manager checks."""

    settings = DBSettings.model_construct(queue_table="jobs", statistics_table="jobs", queue_table_log="jobs")


class SqliteDriver(Driver):
    """Wakes a queue manager; the repository itself reads and writes."""

    def __init__(self, tasks: "SqliteTasks") -> None:
        self._callbacks: list[Callable[[str], None]] = []
        self._channel = tasks.channel
        self._shutdown = asyncio.Event()
        tasks.queue_changed = self.wake

    def wake(self) -> None:
        """Let the queue manager look for jobs."""
        if not self._callbacks:
            return
        event = TableChangedEvent(
            channel=self._channel, sent_at=utc_now(), type="table_changed_event", operation="insert", table="jobs"
        )
        self._call(event.model_dump_json())

    async def fetch(self, query: str, *args: object) -> list[dict[str, object]]:
        """Never called: the repository executes its statements itself."""
        raise NotImplementedError

    async def execute(self, query: str, *args: object) -> str:
        """Never called: the repository executes its statements itself."""
        raise NotImplementedError

    async def notify(self, channel: str, payload: str) -> None:
        """Send a message to the queue manager of this process."""
        self._call(payload)

    async def add_listener(self, channel: str, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)

    @property
    def shutdown(self) -> asyncio.Event:
        return self._shutdown

    @property
    def tm(self) -> TaskManager:
        return TaskManager()

    async def __aenter__(self) -> "SqliteDriver":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._callbacks.clear()

    def _call(self, payload: str) -> None:
        for callback in self._callbacks:
            callback(payload)


class SqliteQueue:
    """The part of PgQueuer's repository that a queue manager uses."""

    def __init__(self, tasks: "SqliteTasks", concurrency: int) -> None:
        self._tasks = tasks
        self._concurrency = concurrency
        self._manager = ""
        self._is_busy = False
        """Whether there were jobs when it looked last."""
        self.driver = SqliteDriver(tasks)
        self.qbe = _Environment()
        self._outages = OutageLog("The queue of tasks", "attempts that failed")

    async def dequeue(
        self,
        batch_size: int,
        entrypoints: dict[QueueEntrypoint, EntrypointExecutionParameter],
        queue_manager_id: QueueManagerId,
        global_concurrency_limit: int | None,
        heartbeat_timeout: timedelta,
    ) -> list[Job]:
        """Take jobs that are queued, or whose worker has given no sign of life."""
        self._manager = str(queue_manager_id)
        limits = {str(name): one.concurrency_limit for name, one in entrypoints.items()}
        if not self._is_busy and not await self._has_work(limits, heartbeat_timeout):
            return []

        def work(connection: sqlite3.Connection, effects: Effects) -> list[tuple[Any, ...]]:
            return self._take(connection, batch_size, limits, str(queue_manager_id), heartbeat_timeout)

        taken = await self._run(work)
        self._is_busy = bool(taken)
        return [_job(row, queue_manager_id) for row in taken]

    async def _has_work(self, limits: dict[str, int], heartbeat_timeout: timedelta) -> bool:
        """Look before taking the lock for writing: an idle worker writes nothing."""
        stale = time.time() - heartbeat_timeout.total_seconds()

        def work(connection: sqlite3.Connection, effects: Effects) -> bool:
            found = connection.execute(
                f"select 1 from jobs where entrypoint in ({_marks(limits)}) and"
                " ((status = 'queued' and execute_after <= ?) or (status = 'picked' and heartbeat < ?)) limit 1",
                (*limits, time.time(), stale),
            )
            return found.fetchone() is not None

        return await self._run(work, writes=False)

    def _take(
        self, connection: sqlite3.Connection, batch: int, limits: dict[str, int], manager: str, timeout: timedelta
    ) -> list[tuple[Any, ...]]:
        now = time.time()
        own, picked = 0, dict.fromkeys(limits, 0)
        for entrypoint, holder, count in connection.execute(
            "select entrypoint, manager, count(*) from jobs where status = 'picked' group by entrypoint, manager"
        ):
            own += count if holder == manager else 0
            picked[entrypoint] = picked.get(entrypoint, 0) + count
        free = min(batch, self._concurrency - own)
        if free <= 0:
            return []
        columns = "id, entrypoint, payload, attempts"
        rows = connection.execute(
            f"select {columns} from jobs where status = 'picked' and heartbeat < ? and entrypoint in ({_marks(limits)})"
            " order by id limit ?",
            (now - timeout.total_seconds(), *limits, free),
        ).fetchall()
        for entrypoint, limit in limits.items():
            room = free - len(rows)
            room = room if limit == 0 else min(room, limit - picked[entrypoint])
            if room > 0:
                rows += connection.execute(
                    f"select {columns} from jobs where status = 'queued' and entrypoint = ? and execute_after <= ?"
                    " order by id limit ?",
                    (entrypoint, now, room),
                ).fetchall()
        jobs = [row for row in rows if isinstance(row[2], bytes) and isinstance(row[3], int)]
        for number in {row[0] for row in rows}.difference(row[0] for row in jobs):
            _log.error("row %d of the queue of tasks is deleted: it is no job, its values have wrong types", number)
            connection.execute("delete from jobs where id = ?", (number,)).close()
        connection.executemany(
            "update jobs set status = 'picked', manager = ?, heartbeat = ? where id = ?",
            [(manager, now, row[0]) for row in jobs],
        ).close()
        return jobs

    async def log_jobs(self, job_status: list[tuple[Job, JOB_STATUS, TracebackRecord | None]]) -> None:
        """Delete jobs that are done, unless another worker has them now."""
        ids = [(job.id, self._manager) for job, _, _ in job_status]

        def work(connection: sqlite3.Connection, effects: Effects) -> None:
            connection.executemany("delete from jobs where id = ? and manager = ?", ids).close()
            effects.queued.append(True)  # a limit may have a free place now

        await self._run(work)

    async def retry_job(self, job: Job, delay: timedelta, traceback_record: TracebackRecord | None) -> None:
        """Put a job back into the queue, for later, unless another worker has it now."""
        later = time.time() + delay.total_seconds()

        def work(connection: sqlite3.Connection, effects: Effects) -> None:
            connection.execute(
                "update jobs set status = 'queued', manager = null, execute_after = ?, attempts = attempts + 1"
                " where id = ? and manager = ?",
                (later, job.id, self._manager),
            ).close()
            effects.queued.append(True)

        await self._run(work)

    async def update_heartbeat(self, job_ids: list[JobId]) -> None:
        """Note that jobs are still running."""

        def work(connection: sqlite3.Connection, effects: Effects) -> None:
            now = time.time()
            connection.executemany(
                "update jobs set heartbeat = ? where id = ? and manager = ?",
                [(now, one, self._manager) for one in job_ids],
            ).close()

        await self._run(work)

    async def _run(self, work: Callable[[sqlite3.Connection, Effects], ResultT], *, writes: bool = True) -> ResultT:
        """Run work, again and again until the file can be used: a queue manager ends with the first error."""
        delays = iter(_RETRY_SECONDS)
        while True:
            try:
                result = await self._tasks.run(work, writes=writes)
            except TasksUnavailable as error:
                self._outages.failed(str(error))
                await asyncio.sleep(next(delays, _RETRY_SECONDS[-1]))
            else:
                self._outages.recovered()
                return result

    async def queued_work(self, entrypoints: list[QueueEntrypoint]) -> int:
        """Return 0: only jobs that are due count, and the manager looks for new ones often enough."""
        return 0

    async def eligible_queued_work(self, entrypoints: list[QueueEntrypoint]) -> int:
        """Return 0: a job that arrives between two looks wakes the manager."""
        return 0

    async def next_deferred_eta(self, entrypoints: list[QueueEntrypoint]) -> timedelta | None:
        """Return None: the manager looks for jobs that have become due often enough."""
        return None

    async def notify_health_check(self, health_check_event_id: HealthCheckId) -> None:
        """Answer a check of the driver."""
        event = HealthCheckEvent(
            channel=self._tasks.channel, sent_at=utc_now(), type="health_check_event", id=health_check_event_id
        )
        await self.driver.notify(self._tasks.channel, event.model_dump_json())

    async def has_table(self, table: str) -> bool:
        """Return True: the tables are made when the file is opened."""
        return True

    async def table_has_column(self, table: str, column: str) -> bool:
        """Return True."""
        return True

    async def table_has_index(self, table: str, index: str) -> bool:
        """Return True."""
        return True

    async def has_user_defined_enum(self, key: str, enum: str) -> bool:
        """Return True."""
        return True


def _marks(limits: dict[str, int]) -> str:
    return ", ".join("?" * len(limits))


def _job(row: tuple[Any, ...], manager: QueueManagerId) -> Job:
    number, entrypoint, payload, attempts = row
    then = utc_now()
    return Job.model_construct(
        id=JobId(number),
        priority=0,
        created=then,
        updated=then,
        heartbeat=then,
        execute_after=then,
        status="picked",
        entrypoint=QueueEntrypoint(entrypoint),
        payload=payload,
        attempts=attempts,
        queue_manager_id=manager,
        headers=None,
    )
