"""The engine of stored tasks, on any database that has a queue for them."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, TypeVar

from msgspec.structs import replace

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Overloaded
from axolotl_core.task_engine import (
    ITaskEngine,
    ITaskListener,
    ITaskRunner,
    NewTask,
    Outcome,
    TaskChange,
    TaskCounts,
    TaskRecord,
    TasksUnavailable,
    UnknownCall,
)
from axolotl_server.extensions.tasks.engines.run_statements import StartedRun
from axolotl_server.extensions.tasks.engines.stored_run import ITaskDatabase, ITaskWorker, StoredRun, until_reached
from axolotl_server.extensions.tasks.engines.task_sealing import ForeignTask, UnreadableTask
from axolotl_server.extensions.tasks.engines.task_statements import Operation
from axolotl_server.extensions.tasks.engines.task_states import (
    POLL_SECONDS,
    UNREADABLE,
    cancelled_by,
    is_task_id,
    now_text,
)
from axolotl_server.settings.server import ServerSettings

_MAX_KNOWN: Final = 10_000
_LOOK_AT_ONCE: Final = 500
_RETRY_SECONDS: Final = 0.2
MAX_LOSSES: Final = 5
"""How many workers may be lost while they run a task before it fails."""
_LOST: Final = Outcome("failed", "The worker that ran it is gone")

ResultT = TypeVar("ResultT")

_log: Final = logging.getLogger("axolotl")


class StoredTaskEngine(ITaskEngine):
    """Keeps tasks in a database, and runs them in all processes that work."""

    stop_seconds: ClassVar[float] = 5.0
    """How long code may take to end when the server stops."""

    def __init__(self, database: ITaskDatabase, settings: ServerSettings) -> None:
        self._database = database
        self._lease_seconds = settings.tasks.lease_seconds
        self._statements = database.statements
        self._listener: ITaskListener | None = None
        self._runner: ITaskRunner | None = None
        self._runs: dict[str, StoredRun] = {}
        self._known: OrderedDict[str, TaskRecord] = OrderedDict()
        """Open tasks that clients of this process may follow."""
        self._versions: dict[str, tuple[str, str]] = {}
        self._changed: set[str] = set()
        self._wake = asyncio.Event()
        self._background: list[asyncio.Task[None]] = []
        self._worker: ITaskWorker | None = None
        self._working: asyncio.Task[None] | None = None
        self._room = 0
        self._count = 0
        self._counts = TaskCounts()
        self._lost = 0
        self._unclaimed: frozenset[str] = frozenset()
        """The tools whose tasks wait for a worker, as the log says."""
        self._paused = False
        """Whether calls that have just been taken from the queue are left to other workers."""
        self._closed = False

    @property
    def kept(self) -> int:
        return self._count

    @property
    def counts(self) -> TaskCounts:
        return replace(self._counts, lost=self._lost)

    async def ping(self) -> None:
        await self._database.execute(self._statements.state(""), writes=False)
        if not self._database.listens:
            raise TasksUnavailable("the connection that reports changes is broken")

    async def open(self, listener: ITaskListener) -> None:
        self._listener = listener
        await self._database.open(self.note_changes)
        self._count = await self._database.execute(self._statements.count(), writes=False)
        self._background = [asyncio.ensure_future(work()) for work in (self._watch, self._poll, self._keep_tidy)]

    async def submit(self, task: NewTask) -> TaskRecord:
        if self._closed:
            raise Overloaded("The server is shutting down; try again", POLL_SECONDS)
        room, self._room = self._room, self._room - 1
        is_atomic = task.key is not None and self._statements.sealer.rotates
        stored, left = await self._database.execute(self._statements.submit(task, room), atomic=is_atomic)
        if room <= 0:
            self._room = left
        record = self._statements.record(stored)
        self._know(record)
        return record

    async def find(self, task_id: str, owner: bytes | None) -> TaskRecord | None:
        return next(iter(await self.read((task_id,), owner)), None)

    async def read(self, task_ids: Sequence[str], owner: bytes | None) -> Sequence[TaskRecord]:
        known = tuple(filter(is_task_id, task_ids))  # Postgres refuses some other texts, for all who share a round trip
        found = await self._database.execute(self._statements.read(known), writes=False) if known else {}
        records: list[TaskRecord] = []
        for task_id, one in found.items():
            if isinstance(one, ForeignTask):
                raise TasksUnavailable(str(one))
            record = await self.end_unreadable(task_id, one) if isinstance(one, UnreadableTask) else one
            if record is not None and owner in (None, record.owner):
                records.append(record)
                if record.open:
                    self._know(record)
        return records

    async def of(self, owner: bytes | None, after: int, count: int) -> Sequence[TaskRecord]:
        return await self._database.execute(self._statements.owned(owner, after, count), writes=False)

    async def latest(self, count: int) -> Sequence[TaskRecord]:
        return await self._database.execute(self._statements.latest(count), writes=False)

    async def answer(self, task_id: str, owner: bytes, answers: Mapping[str, bytes]) -> frozenset[str]:
        return await self._database.execute(self._statements.answer(task_id, owner, answers))

    async def cancel(self, task_id: str, owner: bytes | None, reason: CancelReason) -> TaskRecord | None:
        await self._database.execute(self._statements.cancel(task_id, owner, reason))
        return await self.find(task_id, owner)

    async def work(self, runner: ITaskRunner) -> None:
        """Take calls from the queue until this is cancelled; those that were taken continue."""
        self._runner, self._paused = runner, self._closed
        worker = self._worker = self._database.worker(self, runner.tools)
        self._working = asyncio.ensure_future(worker.work())
        try:
            await asyncio.shield(self._working)
        except asyncio.CancelledError:
            self._pause()
            raise

    async def close(self) -> None:
        """Stop what still runs here, so that other workers can continue it."""
        again, self._closed = self._closed, True
        if again:
            return
        self._pause()
        await self._end_open()
        for run in tuple(self._runs.values()):
            run.token.cancel(CancelReason.SHUTDOWN)
        if self._working is not None:
            await asyncio.wait((self._working,), timeout=self.stop_seconds)
            self._working.cancel()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._database.close()

    def note_changes(self, task_ids: Iterable[str]) -> None:
        """Look at tasks that a process has changed, if somebody here is interested in them."""
        assert self._listener is not None
        follows = self._listener.follows
        self._changed.update(one for one in task_ids if one in self._runs or follows(one))
        if self._changed:
            self._wake.set()

    async def execute_with_retry(self, make: Callable[[], Operation[ResultT]], *, atomic: bool = True) -> ResultT:
        """Execute an operation, again and again until the database can be reached; `make` makes it anew."""
        return await until_reached(lambda: self._database.execute(make(), atomic=atomic))

    async def end_unreadable(self, task_id: str, error: UnreadableTask) -> TaskRecord | None:
        """End a task whose stored values were changed; leave one with another key to processes that have it."""
        if isinstance(error, ForeignTask):
            _log.error("%s", error)
            return None
        _log.error("a stored task fails: %s", error)
        await self.execute_with_retry(lambda: self._statements.end_unreadable(task_id, UNREADABLE))
        found = await self._database.execute(self._statements.read((task_id,)), writes=False)
        record = found.get(task_id)
        return None if isinstance(record, UnreadableTask) else record

    async def tidy(self) -> None:
        """Delete expired tasks, and results that exceed the limit."""
        await self._database.execute(self._statements.drop_expired())
        await self._database.execute(self._statements.drop_results())
        await self._database.tidy()
        self._count = await self._database.execute(self._statements.count(), writes=False)
        self._room = 0
        waiting = await self._database.execute(self._statements.unclaimed(self._lease_seconds), writes=False)
        for tool in waiting.keys() - self._unclaimed:
            _log.warning(
                "tasks of tool %s wait for a worker for more than %g seconds: %d; start one that has this tool",
                tool,
                self._lease_seconds,
                waiting[tool],
            )
        self._unclaimed = frozenset(waiting)
        counts, parked = await self._database.execute(self._statements.count_open(), writes=False)
        self._counts = TaskCounts(counts, parked, sum(waiting.values()))

    async def run_started(self, started: StartedRun) -> bool:
        """Execute a run until it has ended; return False if only a worker of another version can do that."""
        runner = self._runner
        assert runner is not None
        self._lost += started.lost
        task = started.task
        fails = started.lost and (not runner.may_restart(task.tool) or task.losses >= MAX_LOSSES)
        if started.lost:
            then = "fails" if fails else f"is taken over, as run {task.run}"
            _log.warning("task %s of tool %s %s: the worker that ran it is gone", task.id, task.tool, then)
        if fails:
            await self.execute_with_retry(lambda: self._statements.end(task, _LOST))
        elif self._paused:
            await self.execute_with_retry(lambda: self._statements.release(started))
        else:
            return await self._run(started, runner)
        return True

    def _pause(self) -> None:
        self._paused = True
        if self._worker is not None:
            self._worker.stop()

    async def _run(self, started: StartedRun, runner: ITaskRunner) -> bool:
        task_id = started.task.id
        run = self._runs[task_id] = self._make_run(started)
        seconds = max(0.0, started.task.expires_at - time.time())
        expiry = asyncio.get_running_loop().call_later(seconds, run.token.cancel, CancelReason.TIMEOUT)
        try:
            await runner.run(run)
        except UnknownCall:
            _log.warning("task %s was submitted by a server of another version; another worker may run it", task_id)
            await self.execute_with_retry(lambda: self._statements.suspend(started.task))
            return False
        finally:
            expiry.cancel()
            if self._runs.get(task_id) is run:
                del self._runs[task_id]
            await run.flush()
        return True

    def _make_run(self, started: StartedRun) -> StoredRun:
        return StoredRun(self, self._database, started)

    async def _end_open(self) -> None:
        """Leave open tasks to other workers."""

    async def _watch(self) -> None:
        while True:
            await self._wake.wait()
            await self.look()

    async def look(self) -> None:
        """Look at changed tasks: stop runs that have lost their task, deliver answers, tell listeners."""
        assert self._listener is not None
        self._wake.clear()
        changed, self._changed = tuple(self._changed), set()
        for start in range(0, len(changed), _LOOK_AT_ONCE):
            task_ids = changed[start : start + _LOOK_AT_ONCE]
            try:
                await self._compare_runs({one: self._runs[one] for one in task_ids if one in self._runs})
                await self._report([one for one in task_ids if self._listener.follows(one)])
            except TasksUnavailable:
                await asyncio.sleep(_RETRY_SECONDS)
                self._changed.update(task_ids)
                self._wake.set()
            except Exception:  # the tasks that change next are still looked at
                _log.exception("changed tasks cannot be looked at")

    async def _compare_runs(self, runs: Mapping[str, StoredRun]) -> None:
        if not runs:
            return
        asking = tuple(task_id for task_id, run in runs.items() if run.asks)
        states, answers = await self._database.execute(self._statements.states(tuple(runs), asking), writes=False)
        for task_id, run in runs.items():
            try:
                run.compare(states.get(task_id), answers)
            except UnreadableTask as error:
                await self.end_unreadable(task_id, error)

    async def _report(self, task_ids: Sequence[str]) -> None:
        """Tell listeners about tasks, and deliver their messages."""
        if not task_ids:
            return
        assert self._listener is not None
        found = await self._database.execute(self._statements.read(task_ids), writes=False)
        records: list[TaskRecord] = []
        for task_id in task_ids:
            one = found.get(task_id)
            record = await self.end_unreadable(task_id, one) if isinstance(one, UnreadableTask) else one
            if record is not None or (record := self._expired(task_id)) is not None:
                records.append(record)
        heard = [record for record in records if self._listener.hears(record.id)]
        messages = await self._database.execute(self._statements.take_messages(heard)) if heard else {}
        for record in records:
            version = record.status, record.updated_at
            is_status = self._versions.get(record.id, ("working", record.created_at)) != version
            if record.open:
                self._know(record)
                self._versions[record.id] = version
            else:
                self._versions.pop(record.id, None)
                self._known.pop(record.id, None)
            own = tuple(messages.get(record.id, ()))
            self._listener.task_changed(TaskChange(record, is_status=is_status, messages=own))

    def _expired(self, task_id: str) -> TaskRecord | None:
        """Describe the end of a task that is no longer stored, if this process knew it."""
        known = self._known.pop(task_id, None)
        if known is None:
            return None
        outcome = cancelled_by(CancelReason.TIMEOUT)
        return replace(
            known, status="cancelled", message=outcome.message, outcome=outcome, questions={}, updated_at=now_text()
        )

    async def _poll(self) -> None:
        """Look at all tasks of this process now and then, because a message about a change may be lost."""
        while True:
            await asyncio.sleep(self._database.poll_seconds)
            self.note_changes((*self._runs, *self._known))

    async def _keep_tidy(self) -> None:
        while True:
            await asyncio.sleep(min(10.0, self._lease_seconds / 2))
            try:
                await self.tidy()
            except Exception as error:  # the next attempt may succeed
                if not isinstance(error, TasksUnavailable):
                    _log.exception("the store of tasks cannot be tidied")

    def _know(self, record: TaskRecord) -> None:
        self._known[record.id] = record
        if len(self._known) > _MAX_KNOWN:
            self._versions.pop(self._known.popitem(last=False)[0], None)
