"""The worker on Postgres: PgQueuer takes jobs from the queue, renews leases, and finds the jobs of lost workers."""

import time
from collections.abc import Awaitable, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

from pgqueuer.core.qm import QueueManager
from pgqueuer.domain.errors import RetryRequested
from pgqueuer.domain.models import Job
from pgqueuer.domain.types import Channel
from pgqueuer.ports import RepositoryPort

from axolotl_server.extensions.tasks.engines.run_statements import RunStatements, StartedRun
from axolotl_server.extensions.tasks.engines.stored_run import IExecution
from axolotl_server.extensions.tasks.engines.task_sealing import ForeignTask, TaskSealer, UnreadableTask
from axolotl_server.extensions.tasks.engines.task_statements import COLUMNS, Execute, Operation, StoredTask
from axolotl_server.extensions.tasks.engines.task_states import LARGE_CALL_BYTES
from axolotl_server.settings.calls import TaskSettings
from axolotl_server.settings.server import ServerSettings

POLL_SECONDS: Final = 5.0
_BATCH: Final = 25
_FULL_SECONDS: Final = 1.0
"""How long a large call waits for others before a worker looks at it again."""


class TakenJob(NamedTuple):
    """The place in the queue that a worker has taken; it may begin a run only while it still has the place."""

    id: int
    worker: str
    tool: str
    """The tool whose place it is; a task of another one does not begin."""


class PostgresStatements(RunStatements):
    """The operations on tasks whose places in the queue are in a table of PgQueuer."""

    def __init__(self, settings: ServerSettings, sealer: TaskSealer, *, schema: str, jobs: str) -> None:
        super().__init__(settings, sealer, tables=f"{schema}.", locking=" for update")
        self._jobs = f"{schema}.{jobs}"

    def begin_first(self, task_id: str, job: TakenJob) -> Operation[StartedRun | None]:
        """Begin the first run of a small call, in one statement; None if there is nothing to run or it ran before."""
        rows = yield Execute(
            f"update {self.tasks} set run = 1, state = 'running' where id = $1 and run = 0 and state = 'queued'"
            f" and expires_at > $2 and tool = $5 and length(call) <= {LARGE_CALL_BYTES}"
            f" and exists ({self._is_taken('$3', '$4')}) returning {COLUMNS}, call",
            (task_id, time.time(), *job),
            task_id=task_id,
        )
        if not rows:
            return None
        *columns, call = rows[0]
        task = StoredTask(*columns)
        try:
            opened = self._open(call, task, "call")
        except ForeignTask:
            yield Execute(
                f"update {self.tasks} set run = 0, state = 'queued' where id = $1 and run = 1 and state = 'running'",
                (task_id,),
            )
            raise
        return StartedRun(task, opened, {}, {}, lost=False, job=job)

    def begin_next(self, task_id: str, job: TakenJob) -> Operation[StartedRun | None]:
        """Begin the next run of a task; None if there is nothing to run, or another worker has the job now."""
        yield Execute(f"select id from {self.tasks} where id = $1{self.locking}", (task_id,))
        taken = f"{self._is_taken('$1', '$2')} and exists (select 1 from {self.tasks} where id = $4 and tool = $3)"
        if not (yield Execute(taken, (*job, task_id))):
            return None
        started = yield from self.begin(task_id)
        return None if started is None else started._replace(job=job)

    def _is_taken(self, job: str, worker: str) -> str:
        """Write the query whether a worker still has a job."""
        return f"select 1 from {self._jobs} where id = {job} and queue_manager_id::text = {worker}"

    def _leave(self, started: StartedRun) -> Operation[None]:
        job: TakenJob = started.job
        yield Execute(f"delete from {self._jobs} where id = $1 and queue_manager_id::text = $2", job[:2])


class PostgresWorker:
    """Executes the jobs that a queue manager of PgQueuer takes."""

    def __init__(
        self,
        queue: RepositoryPort,
        channel: Channel,
        statements: PostgresStatements,
        settings: TaskSettings,
        *,
        execution: IExecution,
        tools: Mapping[str, int],
    ) -> None:
        self._statements = statements
        self._settings = settings
        self._execution = execution
        self._large_bytes = 0
        """The size of the large calls that run here."""
        self._manager = QueueManager(queue, channel=channel)
        for tool, limit in tools.items():
            self._manager.entrypoint(tool, concurrency_limit=limit, accepts_context=False)(self._execute)

    async def work(self) -> None:
        lease = self._settings.lease_seconds
        await self._manager.run(
            dequeue_timeout=timedelta(seconds=min(POLL_SECONDS, lease / 2)),
            batch_size=max(1, min(_BATCH, self._settings.concurrency)),
            heartbeat_timeout=timedelta(seconds=lease),
            log_aggregation_interval=timedelta(0),
        )

    def stop(self) -> None:
        self._manager.shutdown.set()

    async def _execute(self, job: Job) -> None:
        """Execute a task that was taken from the queue; one that is gone, or has ended, needs nothing.

        A large call goes back into the queue while those that run here take too much memory with it.
        """
        if self._manager.shutdown.is_set():
            raise RetryRequested(timedelta(0))
        task_id = (job.payload or b"").decode()
        taken = TakenJob(job.id, str(job.queue_manager_id), job.entrypoint)
        retry, statements = self._execution.execute_with_retry, self._statements
        if await self._started(task_id, retry(lambda: statements.begin_first(task_id, taken), atomic=False)):
            return
        size = await retry(lambda: statements.size(task_id), atomic=False)
        if size and self._large_bytes and self._large_bytes + size > self._statements.max_bytes:
            raise RetryRequested(timedelta(seconds=_FULL_SECONDS))
        self._large_bytes += size
        try:
            await self._started(task_id, retry(lambda: statements.begin_next(task_id, taken)))
        finally:
            self._large_bytes -= size

    async def _started(self, task_id: str, starting: Awaitable[StartedRun | None]) -> bool:
        """Run a task to its end if it can start; return False if there is nothing to run."""
        try:
            started = await starting
        except UnreadableTask as error:
            await self._execution.end_unreadable(task_id, error)
            is_done = not isinstance(error, ForeignTask)
        else:
            if started is None:
                return False
            is_done = await self._execution.run_started(started)
        if not is_done:
            raise RetryRequested(timedelta(seconds=self._settings.lease_seconds))
        return True
