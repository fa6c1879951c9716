"""The tasks of a process, limited in number and in time."""

import asyncio
import itertools
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias
from weakref import ref

from msgspec import Raw

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InvalidParams, Overloaded, ProtocolError
from axolotl_core.protocol.identity import ANONYMOUS, Principal, RequestId
from axolotl_server.messages.connection import Connection, IStoppable
from axolotl_server.messages.fair_share import Share, is_used_up
from axolotl_server.settings.calls import TaskSettings
from axolotl_server.tasks.task_questions import OpenQuestions

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
Design: TypeAlias = Literal["requested", "directed"]
"""Who decides that a call becomes a task, the client or the server; its methods are those of the same design."""

_OPEN = ("working", "input_required")
_ENDINGS = {
    CancelReason.CLIENT: "The caller cancelled the task",
    CancelReason.DISCONNECT: "The caller has disconnected",
    CancelReason.TIMEOUT: "The task has expired",
    CancelReason.SHUTDOWN: "The server is shutting down",
}


class Owner(NamedTuple):
    """The caller that may see a task."""

    design: Design
    identity: tuple[str | None, str | None, str]
    connection: ref[Connection] | None
    """For anonymous callers, the connection; a closed one equals no other."""


def owner_of(design: Design, principal: Principal, connection: Connection | None) -> Owner:
    """Give the owner of a task; scopes and claims do not count, because they change when a token is renewed."""
    same = ref(connection) if principal == ANONYMOUS and connection is not None else None
    return Owner(design, principal.identity, same)


class Task:
    """The state of a call that runs as a task."""

    def __init__(
        self,
        owner: Owner,
        share: Share | None,
        number: int,
        ttl_seconds: float,
        *,
        on_change: Callable[["Task"], object],
        on_end: Callable[["Task"], object],
    ) -> None:
        self.id = secrets.token_urlsafe(24)
        self.owner = owner
        self.share = share
        """Whom it counts for."""
        self.number = number
        """Its position among all tasks of the process."""
        self.ttl_seconds = ttl_seconds
        self.expires = time.monotonic() + ttl_seconds
        self.status: Status = "working"
        self.message: str | None = None
        self.created_at = self.updated_at = _now()
        self.result: Raw | None = None
        """The whole result object of the tool."""
        self.result_bytes = 0
        self.error: ProtocolError | None = None
        """The error that the call ended with."""
        self.questions = OpenQuestions()
        """The questions to the caller, if it answers by key."""
        self.calls: dict[RequestId, IStoppable] = {}
        """The running call."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.silent = False
        """Whether notifications are suppressed, because the server stops and the connection may be gone."""
        self._on_change: Callable[[Task], object] | None = on_change
        self._on_end: Callable[[Task], object] | None = on_end
        self._unanswered: set[Hashable] = set()

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.status in _OPEN

    def end(self, status: Status, *, result: bytes | None = None, message: str | None = None) -> None:
        """Note how it ended, unless it has already ended."""
        if not self.open:
            return
        if result is not None:
            self.result, self.result_bytes = Raw(result), len(result)
        self.questions.close()
        self._become(status, message)
        on_end, self._on_change, self._on_end = self._on_end, None, None
        self.ended.set_result(None)
        if on_end is not None:
            on_end(self)

    def fail(self, error: ProtocolError) -> None:
        """Note the error that it ended with, unless it has already ended."""
        if self.open:
            self.error = copy_error(error)
            self.end("failed", message=error.message)

    def cancel(self, reason: CancelReason) -> None:
        """End it without a result, and stop its call."""
        self.silent = reason is CancelReason.SHUTDOWN
        self.end("cancelled", message=_ENDINGS[reason])
        for running in tuple(self.calls.values()):
            running.stop(reason)

    def wait_for(self, answer: Hashable) -> None:
        """Note that it waits for an answer of the caller."""
        self._unanswered.add(answer)
        if self.open:
            self._become("input_required", None)

    def stop_waiting_for(self, answer: Hashable) -> None:
        """Note that it no longer waits for an answer."""
        if answer in self._unanswered:
            self._unanswered.remove(answer)
            if self.open and not self._unanswered:
                self._become("working", None)

    def _become(self, status: Status, message: str | None) -> None:
        self.status, self.message, self.updated_at = status, message, _now()
        if self._on_change is not None:
            self._on_change(self)


def copy_error(error: ProtocolError) -> ProtocolError:
    """Copy an error in order to raise it again: the original would keep all frames that it has passed alive."""
    again = type(error).__new__(type(error), *error.args)
    again.__dict__.update(vars(error))
    return again


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_STOP_GRACE_SECONDS = 1.0


class TaskStore:
    """Keeps tasks until they expire."""

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        self._next_number = itertools.count(1).__next__
        self._tasks: dict[str, Task] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False
        self._result_bytes: Counter[Share | None] = Counter()
        """The size of the results that are kept, by whom they count for."""

    @property
    def kept(self) -> int:
        """The number of tasks, those that have ended included."""
        return len(self._tasks)

    def create(
        self,
        owner: Owner,
        ttl_seconds: float | None,
        on_change: Callable[[Task], object],
        *,
        share: Share | None = None,
    ) -> Task:
        """Create a task with the requested time to live, limited by the settings.

        It raises Overloaded if there are too many tasks, of all callers or of this one, or if the server is stopping.
        """
        if self._closed:
            raise Overloaded("The server is shutting down; try again", self._settings.poll_interval_seconds)
        if len(self._tasks) >= self._settings.maximum:
            raise Overloaded("There are too many tasks; try again later", self._settings.poll_interval_seconds)
        limit = self._settings.maximum_per_principal
        if is_used_up(share, limit, self._tasks.values()):
            raise Overloaded(
                f"Too many tasks: one caller may have {limit}; try again when older ones have expired",
                self._settings.poll_interval_seconds,
            )
        longest = self._settings.ttl_seconds
        ttl_seconds = longest if ttl_seconds is None else min(ttl_seconds, longest)
        task = Task(owner, share, self._next_number(), ttl_seconds, on_change=on_change, on_end=self._keep_result)
        self._tasks[task.id] = task
        self._expire_later(task)
        return task

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work of a task in the background."""
        running = asyncio.get_running_loop().create_task(work)
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    def find(self, task_id: str, owner: Owner) -> Task:
        """Find a task of an owner, or raise InvalidParams if there is none."""
        task = self._tasks.get(task_id)
        if task is None or task.owner != owner or task.expires <= time.monotonic():
            raise InvalidParams("Task not found: it has expired, or there is no task with that ID")
        return task

    def of(self, owner: Owner, after: int = 0) -> Iterator[Task]:
        """Give the tasks of an owner after a position, the oldest first."""
        now = time.monotonic()
        for task in tuple(self._tasks.values()):
            if task.number > after and task.owner == owner and task.expires > now:
                yield task

    def describe(self, task: Task, *, unit: Literal["", "Ms"] = "") -> dict[str, Any]:
        """Describe a task in the form of the protocol; the extension appends the unit to the names of its times."""
        description: dict[str, Any] = {
            "taskId": task.id,
            "status": task.status,
            "createdAt": task.created_at,
            "lastUpdatedAt": task.updated_at,
            f"ttl{unit}": round(task.ttl_seconds * 1000),
            f"pollInterval{unit}": round(self._settings.poll_interval_seconds * 1000),
        }
        return description if task.message is None else {**description, "statusMessage": task.message}

    async def close(self) -> None:
        """Refuse further tasks and stop all calls; their code gets a moment to end, once."""
        again, self._closed = self._closed, True
        for task_id in tuple(self._tasks):
            self._drop(task_id, CancelReason.SHUTDOWN)
        if self._running and not again:
            await asyncio.wait(self._running, timeout=_STOP_GRACE_SECONDS)

    def _keep_result(self, task: Task) -> None:
        """Count the result of a task that has ended. If there is too much, drop tasks of those who have most of it."""
        if not task.result_bytes or task.id not in self._tasks:
            return
        self._result_bytes[task.share] += task.result_bytes
        while self._result_bytes.total() > self._settings.max_bytes:
            [(largest, _)] = self._result_bytes.most_common(1)
            finished = (one for one in self._tasks.values() if one.share == largest and one.result_bytes)
            self._drop(next(finished).id, CancelReason.TIMEOUT)

    def _expire_later(self, task: Task) -> None:
        seconds = max(0.0, task.expires - time.monotonic())
        self._timers[task.id] = asyncio.get_running_loop().call_later(seconds, self._expire, task)

    def _expire(self, task: Task) -> None:
        """Drop an expired task; a timer may fire early, because the loop has another clock."""
        if task.expires > time.monotonic():
            self._expire_later(task)
        else:
            self._drop(task.id, CancelReason.TIMEOUT)

    def _drop(self, task_id: str, reason: CancelReason) -> None:
        self._timers.pop(task_id).cancel()
        task = self._tasks.pop(task_id)
        self._result_bytes[task.share] -= task.result_bytes
        if not self._result_bytes[task.share]:
            del self._result_bytes[task.share]
        task.cancel(reason)
