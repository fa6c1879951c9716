"""`ITaskDatabase`, the port for the database of stored tasks, and one run of such a task."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from axolotl_core.calls.cancellation import CancellationToken, CancelReason
from axolotl_core.errors import ToolCancelled
from axolotl_core.task_engine import Outcome, TaskQuestion, TaskRecord, TasksUnavailable
from axolotl_server.execution.outage_log import OutageLog
from axolotl_server.extensions.tasks.engines.run_statements import RunStatements, StartedRun
from axolotl_server.extensions.tasks.engines.task_sealing import UnreadableTask, mark_of
from axolotl_server.extensions.tasks.engines.task_statements import Operation, Row, StoredTask
from axolotl_server.extensions.tasks.engines.task_states import reason_in

_RETRY_SECONDS = 0.05
DELAYS: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
"""The seconds between attempts to reach a database; the last one is repeated."""
_MAX_UNSENT = 100
ResultT = TypeVar("ResultT")


async def until_reached(attempt: Callable[[], Awaitable[ResultT]], outages: OutageLog | None = None) -> ResultT:
    """Try again and again until the database can be reached, and log what failed."""
    delays = iter(DELAYS)
    while True:
        try:
            result = await attempt()
        except TasksUnavailable as error:
            if outages is not None:
                outages.failed(str(error))
            await asyncio.sleep(next(delays, DELAYS[-1]))
        else:
            if outages is not None:
                outages.recovered()
            return result


class ITaskDatabase(ABC):
    """A database that executes operations, and tells all processes which tasks have changed."""

    statements: RunStatements
    poll_seconds: float
    """How often changes are looked for, in case that a message was lost."""
    send_seconds = 0.05
    """How long the messages of a run wait for others."""

    @property
    def listens(self) -> bool:
        """Whether it reports changes at the moment."""
        return True

    @abstractmethod
    async def open(self, changed: Callable[[Iterable[str]], object]) -> None:
        """Connect, or raise ConfigurationError. `changed` is called with the IDs of tasks."""

    @abstractmethod
    async def prepare(self) -> None:
        """Create the tables, or bring them up to date."""

    @abstractmethod
    async def execute(self, operation: Operation[ResultT], *, writes: bool = True, atomic: bool = True) -> ResultT:
        """Execute an operation, or raise TasksUnavailable; one that is not `atomic` needs no transaction."""

    @abstractmethod
    def worker(self, execution: "IExecution", tools: Mapping[str, int]) -> "ITaskWorker":
        """Make a worker that takes the tasks of some tools, each with the limit for all workers; 0 means none."""

    @abstractmethod
    async def tidy(self) -> None:
        """Put tasks without a place in the queue back into it, and delete what the queue left over."""

    @abstractmethod
    async def close(self) -> None:
        """Disconnect."""


class IExecution(Protocol):
    """The part of an engine that executes what a worker has taken."""

    async def execute_with_retry(self, make: Callable[[], Operation[ResultT]], *, atomic: bool = True) -> ResultT:
        """Execute an operation, again and again until the database can be reached; `make` makes it anew."""

    async def run_started(self, started: StartedRun) -> bool:
        """Execute a run until it has ended; return False if only a worker of another version can do that."""

    async def end_unreadable(self, task_id: str, error: UnreadableTask) -> TaskRecord | None:
        """End a task whose values were changed; leave one with another key to processes that have it."""


class ITaskWorker(Protocol):
    """Takes tasks from the queue."""

    async def work(self) -> None:
        """Take and execute tasks, as many as there is room for, until `stop`, and until all of them have ended."""

    def stop(self) -> None:
        """Take no more tasks."""


class StoredRun:
    """A run whose writes count only while it is the current run of its task."""

    origin: Any = None

    def __init__(self, execution: IExecution, database: ITaskDatabase, started: StartedRun) -> None:
        self.call = started.call
        self.answers: Mapping[str, bytes] = started.answers
        self.kept: Mapping[str, bytes] = started.kept
        self.token = CancellationToken()
        self._started, self._task = started, started.task
        self._statements = database.statements
        self.record: TaskRecord = self._statements.record(started.task)
        self._database = database
        self._execute_with_retry = execution.execute_with_retry
        self._waiting: dict[str, asyncio.Future[bytes | None]] = {}
        self._marks: dict[str, bytes] = {}
        """The marks of the questions that wait."""
        self._unsent: list[bytes] = []
        self._sending: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._one_flush = asyncio.Lock()
        self._has_kept = bool(started.answers or started.kept)

    def send(self, message: bytes) -> None:
        """Send a message soon, together with others; of too many, the latest count."""
        self._unsent = [*self._unsent[1 - _MAX_UNSENT :], message]
        if self._sending is None:
            self._sending = asyncio.get_running_loop().call_later(self._database.send_seconds, self._flush_soon)

    async def ask(self, key: str, question: TaskQuestion, *, hold_seconds: float | None = None) -> bytes | None:
        self._has_kept = True
        sealed = self._statements.seal_question(self._task, key, question)
        self._marks[key] = mark_of(sealed)
        answered = self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            if not await self._execute_with_retry(lambda: self._statements.ask(self._task, key, sealed)):
                await self._refresh()
            return await self._answer(answered, hold_seconds)
        finally:
            self._waiting.pop(key, None)
            if not answered.done() or answered.cancelled():
                await asyncio.shield(self._withdraw(key))

    async def keep(self, key: str, value: bytes) -> None:
        self._has_kept = True
        if not await self._execute_with_retry(lambda: self._statements.keep(self._task, key, value)):
            await self._refresh()
            raise ToolCancelled("The task has ended, or another worker runs it")
        self.kept = {**self.kept, key: value}

    async def release(self) -> None:
        await self.flush()
        await self._execute_with_retry(lambda: self._statements.release(self._started))

    async def end(self, outcome: Outcome) -> bool:
        await self.flush()
        tidy = self._has_kept
        ended = await self._execute_with_retry(
            lambda: self._statements.end(self._task, outcome, tidy=tidy), atomic=tidy
        )
        self._stop_asking()
        return ended

    @property
    def asks(self) -> bool:
        """Whether its code waits for an answer."""
        return bool(self._waiting)

    def compare(self, task: StoredTask | None, answers: Sequence[Row]) -> None:
        """Compare with the stored task: stop if it has ended or has another run, and take answers.

        An answer to an earlier question with the same key is not taken, even if somebody puts it back into the store.
        Raises UnreadableTask if an answer was changed in the store.
        """
        reason = self._reason_to_stop(task)
        if reason is not None:
            self.token.cancel(reason)
            self._stop_asking()
            return
        own = {key: value for task_id, key, value in answers if task_id == self._task.id and key in self._waiting}
        opened = {key: self._statements.open_answer(self._task, key, value) for key, value in own.items()}
        self._take({key: answer for key, (mark, answer) in opened.items() if mark == self._marks[key]})

    async def flush(self) -> None:
        """Store the messages that wait; those that are being stored are stored when this returns."""
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        async with self._one_flush:
            messages, self._unsent = self._unsent, []
            if messages:
                with suppress(TasksUnavailable):  # a notification that is lost is not missed
                    await self._database.execute(self._statements.send(self._task, messages))

    def _flush_soon(self) -> None:
        self._sending = None
        self._flushing = asyncio.ensure_future(self.flush())

    async def _answer(self, answered: "asyncio.Future[bytes | None]", hold_seconds: float | None) -> bytes | None:
        while True:
            await asyncio.wait((answered,), timeout=hold_seconds)
            if answered.done():
                return answered.result()
            if await self._execute_with_retry(lambda: self._statements.park(self._started, tuple(self._waiting))):
                for one in self._waiting.values():
                    if not one.done():
                        one.set_result(None)
            else:
                await self._refresh()

    async def _refresh(self) -> None:
        """Compare with the stored task now; if the database cannot be reached, the engine compares later."""
        task_id = self._task.id
        try:
            reading = self._statements.states((task_id,), (task_id,))
            states, answers = await self._database.execute(reading, writes=False)
        except TasksUnavailable:
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            self.compare(states.get(task_id), answers)

    async def _withdraw(self, key: str) -> None:
        try:
            await self._database.execute(self._statements.withdraw(self._task, key))
        except TasksUnavailable:
            return  # the question stays until the end of the task

    def _stop_asking(self) -> None:
        """Cancel the questions of code that outlives the task."""
        for answered in self._waiting.values():
            answered.cancel()

    def _take(self, answers: Mapping[str, bytes]) -> None:
        self.answers = {**self.answers, **answers}
        for key, answer in answers.items():
            answered = self._waiting.get(key)
            if answered is not None and not answered.done():
                answered.set_result(answer)

    def _reason_to_stop(self, task: StoredTask | None) -> CancelReason | None:
        if task is None:
            return CancelReason.TIMEOUT
        if task.state == "ended":
            try:
                return reason_in(self._statements.record(task).message)
            except UnreadableTask:  # it has ended, whatever its text says
                return CancelReason.CLIENT
        if task.run != self._task.run:
            return CancelReason.LOST
        return None
