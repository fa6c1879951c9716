"""Tasks in a Postgres database, for processes on many machines."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

import asyncpg  # type: ignore[import-untyped]  # it has no types
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder, QuerySchedulerBuilder
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.domain.models import Job, TracebackRecord
from pgqueuer.domain.settings import DBSettings, Durability
from pgqueuer.domain.types import JOB_STATUS, Channel, JobId, QueueEntrypoint, QueueManagerId
from pgqueuer.ports.repository import EntrypointExecutionParameter

from axolotl_core.errors import ConfigurationError
from axolotl_server.extensions.tasks.engines.postgres_driver import PostgresConnections, PostgresDriver, is_outage
from axolotl_server.extensions.tasks.engines.postgres_worker import POLL_SECONDS, PostgresStatements, PostgresWorker
from axolotl_server.extensions.tasks.engines.store_version import (
    POSTGRES_STEPS,
    STORE_VERSION,
    check_not_newer,
    check_up_to_date,
    steps_from,
)
from axolotl_server.extensions.tasks.engines.stored_run import IExecution, ITaskDatabase, ITaskWorker
from axolotl_server.extensions.tasks.engines.task_sealing import TaskSealer
from axolotl_server.extensions.tasks.engines.task_statements import Changed, Enqueue, Execute, Operation, Row
from axolotl_server.settings.server import ServerSettings

_SCHEMA: Final = """
create schema if not exists {schema};
create table if not exists {schema}.store_version (version integer not null);
create table if not exists {schema}.tasks (
    number bigint generated always as identity primary key, id text not null unique, owner bytea not null, share bytea,
    key bytea, tool text not null, status text not null, state text not null, created_at text not null,
    updated_at text not null, ttl_seconds double precision not null, expires_at double precision not null,
    run integer not null, losses integer not null, version integer not null, message bytea, call bytea, outcome bytea
);
create index if not exists tasks_by_owner on {schema}.tasks (owner, number);
create index if not exists tasks_by_expiry on {schema}.tasks (expires_at);
create table if not exists {schema}.kept (
    task text not null, kind text not null, key text not null, value bytea not null, primary key (task, kind, key)
);
create table if not exists {schema}.messages (
    number bigint generated always as identity primary key, task text not null, value bytea not null
);
create index if not exists messages_by_task on {schema}.messages (task);
"""
_LOCK: Final = 0x61786F6C6F746C
"""Identifies the housekeeping among the advisory locks of the database."""
_PREPARATION_LOCK: Final = _LOCK + 1

_MAX_TOGETHER: Final = 200

_ExecuteAll: TypeAlias = Callable[[Sequence[Execute]], Awaitable[Sequence[Row]]]
"""Executes one statement with the arguments of each step, all or none, and returns the rows in the same order."""

ResultT = TypeVar("ResultT")


def queue_settings(schema: str) -> DBSettings:
    """Name the tables of the queue, whatever the environment says about other installations of PgQueuer."""
    return DBSettings(
        prefix="",
        db_schema=schema,
        channel=Channel(f"{schema}_queue"),
        function="queue_changed",
        statistics_table="queue_statistics",
        queue_status_type="queue_status",
        queue_table="queue",
        queue_table_log="queue_log",
        trigger="queue_changed",
        schedules_table="queue_schedules",
        durability=Durability.balanced,  # the queue survives a crash of the database; nobody reads the log
    )


@dataclass
class _Queue(Queries):
    """The queue of one worker; its jobs can be ended only by this worker, and no log is kept."""

    concurrency: int = field(default=1, kw_only=True)
    _manager: QueueManagerId | None = field(default=None, init=False)

    async def dequeue(
        self,
        batch_size: int,
        entrypoints: dict[QueueEntrypoint, EntrypointExecutionParameter],
        queue_manager_id: QueueManagerId,
        global_concurrency_limit: int | None,
        heartbeat_timeout: timedelta,
    ) -> list[Job]:
        self._manager = queue_manager_id
        return await super().dequeue(batch_size, entrypoints, queue_manager_id, self.concurrency, heartbeat_timeout)

    async def log_jobs(self, job_status: list[tuple[Job, JOB_STATUS, TracebackRecord | None]]) -> None:
        table = self.qbq.qualified.queue_table
        await self.driver.execute(
            f"delete from {table} where id = any($1::bigint[]) and queue_manager_id = $2",
            [job.id for job, _, _ in job_status],
            self._manager,
        )

    async def retry_job(self, job: Job, delay: timedelta, traceback_record: TracebackRecord | None) -> None:
        table = self.qbq.qualified.queue_table
        await self.driver.execute(
            f"update {table} set status = 'queued', execute_after = now() + $3, attempts = attempts + 1,"
            " queue_manager_id = null where id = $1 and queue_manager_id = $2",
            job.id,
            self._manager,
            delay,
        )

    async def update_heartbeat(self, job_ids: list[JobId]) -> None:
        table = self.qbq.qualified.queue_table
        await self.driver.execute(
            f"update {table} set heartbeat = now() where id = any($1::bigint[]) and queue_manager_id = $2",
            list(set(job_ids)),
            self._manager,
        )


class _Waiting(NamedTuple):
    step: Execute
    rows: "asyncio.Future[Sequence[Row]]"


class _SharedStatements:
    """Executes each statement at once if it is idle; what arrives in the meantime shares a round trip and a commit."""

    def __init__(self, execute_all: _ExecuteAll) -> None:
        self._execute_all = execute_all
        self._waiting: dict[str, list[_Waiting]] = {}
        """By the text of the statement; it is absent while nobody executes it."""
        self._working: set[asyncio.Task[None]] = set()

    async def execute(self, step: Execute) -> Sequence[Row]:
        """Execute a statement about one task, and return its row if there is one."""
        one = _Waiting(step, asyncio.get_running_loop().create_future())
        waiting = self._waiting.get(step.sql)
        if waiting is None:
            self._waiting[step.sql] = [one]
            working = asyncio.ensure_future(self._work(step.sql))  # whoever waits may be cancelled, the others not
            self._working.add(working)
            working.add_done_callback(self._working.discard)
        else:
            waiting.append(one)
        return await one.rows

    async def _work(self, sql: str) -> None:
        while waiting := [one for one in self._waiting[sql] if not one.rows.done()]:
            chosen: dict[str | None, _Waiting] = {}
            later: list[_Waiting] = []
            for one in waiting:  # a row is assigned by its task, so no task occurs twice
                if one.step.task_id in chosen or len(chosen) == _MAX_TOGETHER:
                    later.append(one)
                else:
                    chosen[one.step.task_id] = one
            self._waiting[sql] = later
            try:
                rows = await self._execute_all([one.step for one in chosen.values()])
            except Exception as error:
                for one in chosen.values():
                    if not one.rows.done():
                        one.rows.set_exception(error)
            else:
                found = {row["id"]: row for row in rows}  # type: ignore[call-overload]  # rows know their columns
                for task_id, one in chosen.items():
                    if not one.rows.done():
                        one.rows.set_result((found[task_id],) if task_id in found else ())
        del self._waiting[sql]


class PostgresTasks(ITaskDatabase):
    """A database that processes on many machines share; it notifies them of changes."""

    statements: PostgresStatements
    poll_seconds = POLL_SECONDS

    def __init__(self, url: str, settings: ServerSettings, sealer: TaskSealer) -> None:
        schema = self._schema = settings.tasks.postgres_schema
        names = self._names = queue_settings(schema)
        self.statements = PostgresStatements(settings, sealer, schema=schema, jobs=names.queue_table)
        self._settings = settings.tasks
        self._notices = f"{schema}_tasks"
        self._url = url
        self._connections = PostgresConnections(url)
        self._jobs = (
            f"insert into {names.qualified.queue_table} (priority, entrypoint, payload, execute_after, headers, status)"
        )
        self._insert_job = f"{self._jobs} values (0, $1, $2, now(), '{{}}', 'queued')"
        self._shared = _SharedStatements(self._fetch_all)

    @property
    def listens(self) -> bool:
        return self._connections.listens

    async def open(self, changed: Callable[[Iterable[str]], object]) -> None:
        try:
            await self._connections.open()
            check_up_to_date(await self._connections.use(self._version))
        except ConfigurationError:
            await self._connections.close()
            raise
        except Exception as error:
            await self._connections.close()
            raise _unusable(error) from None
        await self._connections.listen(self._notices, lambda message: changed(message.split("\n")))

    async def prepare(self) -> None:
        """Create the tables, or bring them up to date; needs a role that may do that."""
        try:
            connection = await asyncpg.connect(self._url)
        except Exception as error:
            raise _unusable(error) from None
        try:
            await connection.execute("select pg_advisory_lock($1)", _PREPARATION_LOCK)
            check_not_newer(await self._version(connection))
            async with connection.transaction():
                await connection.execute(_SCHEMA.format(schema=self._schema))
                version = await self._version(connection)
                for statement in steps_from(version, POSTGRES_STEPS, f"{self._schema}."):
                    await connection.execute(statement)
                await connection.execute(f"delete from {self._schema}.store_version")
                await connection.execute(f"insert into {self._schema}.store_version values ({STORE_VERSION})")
            queue = self._queries(AsyncpgDriver(connection))
            if await queue.schema_is_installed():
                await queue.upgrade()
            else:
                await queue.install(create_schema=False)
        finally:
            await connection.close()

    async def _version(self, connection: Any) -> int:
        """Read the version of the store; 0 if it has none, because it is old or empty."""
        if await connection.fetchval("select to_regclass($1)", f"{self._schema}.store_version") is None:
            return 0
        return await connection.fetchval(f"select max(version) from {self._schema}.store_version") or 0

    async def execute(self, operation: Operation[ResultT], *, writes: bool = True, atomic: bool = True) -> ResultT:
        if not writes or not atomic:
            return await self._share(operation)

        async def work(connection: Any) -> ResultT:
            async with connection.transaction():
                return await self._step(operation, connection)

        return await self._connections.use(work)

    def worker(self, execution: IExecution, tools: Mapping[str, int]) -> ITaskWorker:
        queue = self._queries(PostgresDriver(self._connections), self._settings.concurrency)
        channel = Channel(self._names.channel)
        return PostgresWorker(queue, channel, self.statements, self._settings, execution=execution, tools=tools)

    async def tidy(self) -> None:
        table, log = self._names.qualified.queue_table, self._names.qualified.queue_table_log

        tasks = f"{self._schema}.tasks"

        async def work(connection: Any) -> None:
            async with connection.transaction():
                if not await connection.fetchval("select pg_try_advisory_xact_lock($1)", _LOCK):
                    return
                await connection.execute(f"delete from {log}")
                await connection.execute(
                    f"delete from {table} job where status = 'queued' and not exists (select 1 from {tasks} task"
                    " where task.id = convert_from(job.payload, 'UTF8') and task.state <> 'ended')"
                )
                lost = await connection.fetch(
                    f"select tool, id from {tasks} task where state in ('queued', 'running')"
                    f" and not exists (select 1 from {table} job where job.payload = convert_to(task.id, 'UTF8'))"
                    " for update skip locked"  # whoever holds a lock may be about to put the task into the queue
                )
                for tool, task_id in lost:
                    await connection.execute(self._insert_job, tool, task_id.encode())

        await self._connections.use(work)

    async def close(self) -> None:
        await self._connections.close()

    def _queries(self, driver: Any, concurrency: int = 1) -> _Queue:
        names = self._names
        return _Queue(
            driver,
            QueryBuilderEnvironment(names),
            QueryQueueBuilder(names),
            QuerySchedulerBuilder(names),
            concurrency=concurrency,
        )

    async def _step(self, operation: Operation[ResultT], connection: Any) -> ResultT:
        """Execute an operation in a transaction."""
        rows: Any = None
        changed: list[str] = []
        while True:
            try:
                step = operation.send(rows)
            except StopIteration as ended:
                if changed:
                    await connection.execute("select pg_notify($1, $2)", self._notices, "\n".join(changed[:100]))
                return cast(ResultT, ended.value)
            rows = ()
            if isinstance(step, Changed):
                changed.append(step.task_id)
            elif isinstance(step, Enqueue):
                await connection.execute(self._insert_job, step.tool, step.task_id.encode())
            else:
                rows = await connection.fetch(self._sql(step), *step.arguments)

    async def _share(self, operation: Operation[ResultT]) -> ResultT:
        """Execute an operation that needs no transaction, its statements together with those of others."""
        rows: Any = None
        while True:
            try:
                step = operation.send(rows)
            except StopIteration as ended:
                return cast(ResultT, ended.value)
            assert isinstance(step, Execute)
            rows = await (self._fetch_all((step,)) if step.task_id is None else self._shared.execute(step))

    async def _fetch_all(self, steps: Sequence[Execute]) -> Sequence[Row]:
        """Execute a statement with the arguments of each step, in one round trip and one transaction."""
        sql, arguments = self._sql(steps[0]), [step.arguments for step in steps]
        locks = sorted({int.from_bytes(step.lock[:7]) for step in steps if step.lock is not None})

        async def fetch(connection: Any) -> Sequence[Row]:
            return cast(Sequence[Row], await connection.fetchmany(sql, arguments))

        async def work(connection: Any) -> Sequence[Row]:
            if not locks:
                return await fetch(connection)
            async with connection.transaction():
                await connection.execute("; ".join(f"select pg_advisory_xact_lock({lock})" for lock in locks))
                return await fetch(connection)

        return await self._connections.use(work)

    def _sql(self, step: Execute) -> str:
        """Add what happens at the same time to a statement that returns a task."""
        if step.enqueue is not None:
            job = f"{self._jobs} select 0, tool, convert_to(id, 'UTF8'), now(), '{{}}', 'queued' from task"
            return f"with task as ({step.sql}), job as ({job}) select * from task"
        if step.changes:
            return f"with task as ({step.sql}) select task.* from task, lateral pg_notify('{self._notices}', task.id)"
        return step.sql


def _unusable(error: BaseException) -> ConfigurationError:
    """Describe why a database cannot be used, without its URL, which may contain a password."""
    what = "cannot be reached" if is_outage(error) else "cannot be used"
    reason = error.strerror if isinstance(error, OSError) else None
    if isinstance(error, asyncpg.PostgresError):  # the messages of the driver may contain parts of the URL
        reason = str(error)
    return ConfigurationError(f"Setting tasks.url: the database {what}: {reason or type(error).__name__}")
