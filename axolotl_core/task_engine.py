"""`ITaskEngine`, the port for the store and the queue of tasks, and the records that it keeps."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias

import msgspec

from axolotl_core.calls.cancellation import CancellationToken, CancelReason
from axolotl_core.errors import AxolotlError

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""The extension that adds tasks to the stateless revision."""

_OPEN: Final = ("working", "input_required")


class TaskQuestion(msgspec.Struct, frozen=True):
    """A question of a task, in the form in which the client gets it."""

    method: str
    params: Mapping[str, Any]
    digest: str
    """Identifies the wording; an answer counts only for the same wording."""


class TaskError(msgspec.Struct, frozen=True):
    """The JSON-RPC error that a task ended with."""

    code: int
    message: str
    data: Any = None


class Outcome(msgspec.Struct, frozen=True):
    """The end of a task: a result, an error, or neither if it was cancelled."""

    status: Literal["completed", "failed", "cancelled"]
    message: str | None = None
    result: bytes | None = None
    """The whole result object of the tool, as JSON."""
    error: TaskError | None = None


class NewTask(msgspec.Struct, frozen=True):
    """A call that is to run as a task."""

    owner: bytes
    """A digest of the caller that may see the task."""
    tool: str
    call: bytes
    """Everything that a worker needs to run the call. An engine that stores it must encrypt it."""
    ttl_seconds: float
    share: bytes | None = None
    """A digest of the principal or address that the task counts for; None if it is not limited."""
    key: bytes | None = None
    """An idempotency key: if an open task of the owner has it, that task is returned."""
    origin: Any = None
    """The caller in this process, for an engine that is not durable: its runs get it unchanged."""


class TaskRecord(msgspec.Struct, frozen=True):
    """The state of a task that every process can read."""

    id: str
    number: int
    """The position among all tasks."""
    owner: bytes
    tool: str
    created_at: str
    updated_at: str
    ttl_seconds: float
    expires_at: float
    """When the task is deleted, in seconds since 1970."""
    status: TaskStatus = "working"
    message: str | None = None
    run: int = 0
    """The number of the current run; 0 before the first."""
    questions: Mapping[str, TaskQuestion] = {}
    outcome: Outcome | None = None
    """None while the task is open, and when its result was dropped to make room for others."""

    @property
    def open(self) -> bool:
        """Whether the task has not ended."""
        return self.status in _OPEN


class TaskCounts(msgspec.Struct, frozen=True):
    """The tasks of a store, counted for metrics."""

    open: Mapping[tuple[str, str], int] = {}
    """Tasks that have not ended, by tool and status; those that wait for their first run are `queued`."""
    parked: int = 0
    """Tasks that wait for an answer without a worker."""
    unclaimed: int = 0
    """Tasks that no worker has begun, although they have waited for long."""
    lost: int = 0
    """Runs of lost workers that this process has found."""


class TaskChange(msgspec.Struct, frozen=True):
    """A change of a task, as listeners see it."""

    record: TaskRecord
    is_status: bool = True
    """Whether clients are notified of it; a message, or an answer to one of several questions, is no new status."""
    messages: tuple[bytes, ...] = ()
    """Notifications that the code of the task sent to its client."""


class ITaskListener(Protocol):
    """The part of a server that tells clients about their tasks."""

    def follows(self, task_id: str) -> bool:
        """Whether a client of this process waits for changes of a task."""

    def hears(self, task_id: str) -> bool:
        """Whether a message of a task can reach its client from this process; if not, another one may send it."""

    def task_changed(self, change: TaskChange) -> None:
        """Notice a change, made by any process. Changes in quick succession may arrive as one."""


class ITaskRun(Protocol):
    """One run of a task. Its writes count only while it is the current run of the task."""

    @property
    def record(self) -> TaskRecord:
        """The task, as this run knows it."""

    @property
    def call(self) -> bytes:
        """The call, as it was submitted."""

    @property
    def origin(self) -> Any:
        """The caller, as it was submitted; None if the engine is durable."""

    @property
    def answers(self) -> Mapping[str, bytes]:
        """The answers so far, by the key of the question."""

    @property
    def kept(self) -> Mapping[str, bytes]:
        """The values that this run and earlier ones have kept."""

    @property
    def token(self) -> CancellationToken:
        """Cancelled if the code should stop."""

    def send(self, message: bytes) -> None:
        """Send a notification to the client, if it listens. Never waits."""

    async def ask(self, key: str, question: TaskQuestion, *, hold_seconds: float | None = None) -> bytes | None:
        """Publish a question and wait for the answer; an earlier answer with the key is dropped.

        After `hold_seconds` the task may be parked: the result is None, the run is over, and the task runs again from
        the start when an answer has arrived. If the waiting code is cancelled, the question is withdrawn.
        """

    async def keep(self, key: str, value: bytes) -> None:
        """Store a value for later runs; it is durable when this returns."""

    async def release(self) -> None:
        """Return the task to the queue, because this process stops."""

    async def end(self, outcome: Outcome) -> bool:
        """End the task. Return False if the task has ended already, or has another run."""


class ITaskRunner(Protocol):
    """The part of a server that runs the calls of tasks."""

    @property
    def tools(self) -> Mapping[str, int]:
        """The tools that it has, each with the number of calls that all workers together may run; 0 means any."""

    def may_restart(self, tool: str) -> bool:
        """Whether a tool may run again from the start after its worker was lost."""

    async def run(self, run: ITaskRun) -> None:
        """Run a call, and end the task unless it is parked or released. Raises UnknownCall before it begins."""


class TasksUnavailable(AxolotlError):
    """The store of tasks cannot be reached, or a task in it cannot be read here. The text contains no secrets."""


class UnknownCall(AxolotlError):
    """This worker cannot run a call, because a server of another version has submitted it."""


class ITaskEngine(ABC):
    """Stores tasks and runs their calls. All methods are called in one event loop.

    Only one run of a task may write at a time: a run begins by raising the number of runs, and everything that it
    writes later counts only while that number is the current one.
    """

    durable: ClassVar[bool] = True
    """Whether tasks outlive the process."""

    @abstractmethod
    async def open(self, listener: ITaskListener) -> None:
        """Begin, and report changes from now on. Raises ConfigurationError if the store cannot be used."""

    @abstractmethod
    async def submit(self, task: NewTask) -> TaskRecord:
        """Store a task that is to run; it is durable when this returns.

        Raises:
            Overloaded: if there are too many tasks.
            TasksUnavailable: if the store cannot be reached.
        """

    @abstractmethod
    async def find(self, task_id: str, owner: bytes | None) -> TaskRecord | None:
        """Find a task of an owner, or of any owner if it is None. Raises TasksUnavailable."""

    async def read(self, task_ids: Sequence[str], owner: bytes | None) -> Sequence[TaskRecord]:
        """Find several tasks like one; a store reads them with one query. Raises TasksUnavailable."""
        found = [await self.find(task_id, owner) for task_id in task_ids]
        return [record for record in found if record is not None]

    @abstractmethod
    async def of(self, owner: bytes | None, after: int, count: int) -> Sequence[TaskRecord]:
        """Return the tasks of an owner, or of all, after a position, oldest first. Raises TasksUnavailable."""

    @abstractmethod
    async def latest(self, count: int) -> Sequence[TaskRecord]:
        """Return the latest tasks of all owners, the latest first. Raises TasksUnavailable."""

    @abstractmethod
    async def answer(self, task_id: str, owner: bytes, answers: Mapping[str, bytes]) -> frozenset[str]:
        """Store the answers to open questions; others are ignored. Return the keys that were taken."""

    @abstractmethod
    async def cancel(self, task_id: str, owner: bytes | None, reason: CancelReason) -> TaskRecord | None:
        """End a task without a result and stop its run, wherever it runs. Return the task, None if there is none."""

    @abstractmethod
    async def work(self, runner: ITaskRunner) -> None:
        """Run calls until this is cancelled; running calls continue until `close`."""

    @abstractmethod
    async def close(self) -> None:
        """Stop the calls that still run here, and close the store."""

    @property
    @abstractmethod
    def kept(self) -> int:
        """The number of tasks that this process knows to be stored, ended ones included."""

    @property
    def counts(self) -> TaskCounts:
        """Count tasks for the metrics; never waits, so a store may count them only now and then."""
        return TaskCounts()

    async def ping(self) -> None:
        """Raise TasksUnavailable if the store cannot be reached, or cannot report changes."""
        await self.find("", None)
