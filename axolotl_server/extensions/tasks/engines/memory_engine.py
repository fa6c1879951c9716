"""The engine of a single process: a database in memory, whose tasks end with the process."""

import asyncio
import math
import secrets
import time
from typing import Any, Final

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.task_engine import NewTask, Outcome, TaskCounts, TaskQuestion, TaskRecord
from axolotl_server.extensions.tasks.engines.run_statements import StartedRun
from axolotl_server.extensions.tasks.engines.sqlite_tasks import SqliteTasks
from axolotl_server.extensions.tasks.engines.stored_engine import StoredTaskEngine
from axolotl_server.extensions.tasks.engines.stored_run import StoredRun
from axolotl_server.extensions.tasks.engines.task_sealing import TaskPlace, TaskSealer
from axolotl_server.extensions.tasks.engines.task_states import ENDED_BYTES
from axolotl_server.settings.server import ServerSettings

_KEY_BYTES: Final = 32
_FOREVER_SECONDS: Final = 365 * 86400.0
_PAUSE_SECONDS: Final = 0.05
"""How long tasks and results that are to be dropped may wait for others."""


class _NoSealer(TaskSealer):
    """Leaves values as they are: nobody else can read or change them."""

    def seal(self, value: bytes, place: TaskPlace, kind: str, key: str = "") -> bytes:
        return value

    def open(self, sealed: bytes, place: TaskPlace, kind: str, key: str = "") -> bytes:
        return sealed


class MemoryTaskEngine(StoredTaskEngine):
    """The tasks of this process: each begins at once, runs once, and is dropped as soon as it expires."""

    durable = False
    stop_seconds = 1.0

    def __init__(self, settings: ServerSettings) -> None:
        given = settings.tasks
        tasks = given.model_copy(update={"concurrency": given.maximum, "lease_seconds": _FOREVER_SECONDS})
        whole = settings.model_copy(update={"tasks": tasks})
        self._memory = SqliteTasks(None, whole, _NoSealer([secrets.token_urlsafe(_KEY_BYTES)]))
        super().__init__(self._memory, whole)
        self._origins: dict[str, Any] = {}
        """The callers of tasks that have not begun."""
        self._result_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        """The only timer: for the next task that expires, or for results that take too much."""
        self._dropping: asyncio.Task[None] | None = None
        self._last_drop = -math.inf

    @property
    def kept(self) -> int:
        return self._memory.read_now(self._statements.count())

    @property
    def counts(self) -> TaskCounts:
        counts, _ = self._memory.read_now(self._statements.count_open())
        return TaskCounts(counts)

    async def submit(self, task: NewTask) -> TaskRecord:
        record = await super().submit(task)
        if not record.run:
            self._origins.setdefault(record.id, task.origin)
        self._drop_at(record.expires_at)
        await self._memory.take()
        return record

    async def cancel(self, task_id: str, owner: bytes | None, reason: CancelReason) -> TaskRecord | None:
        record = await super().cancel(task_id, owner, reason)
        if record is not None and not record.run:
            self._origins.pop(task_id, None)
        await self.look()
        return record

    async def tidy(self) -> None:
        await self._drop()  # before the rows go, so that callers go with them
        await super().tidy()

    def hears(self, task_id: str) -> bool:
        """Whether the client of a task listens."""
        return self._listener is not None and self._listener.hears(task_id)

    def note_result(self, outcome: Outcome) -> None:
        """Count the bytes of a result; too many are dropped soon."""
        self._result_bytes += ENDED_BYTES + len(outcome.result or b"")
        if self._result_bytes > self._statements.max_bytes:
            self._drop_at(time.time())

    async def run_started(self, started: StartedRun) -> bool:
        """Execute a run, unless its task has expired between its claim and now: then its caller is gone, too."""
        return started.task.id not in self._origins or await super().run_started(started)

    def _make_run(self, started: StartedRun) -> StoredRun:
        return _MemoryRun(self, self._memory, started, self._origins.pop(started.task.id, None))

    async def _end_open(self) -> None:
        """End all tasks: nothing can run them later."""
        assert self._listener is not None
        ended = await self._database.execute(self._statements.cancel_all(CancelReason.SHUTDOWN))
        self._origins.clear()
        if self._timer is not None:
            self._timer.cancel()
        await self._report([task_id for task_id in ended if self._listener.follows(task_id)])

    def _drop_at(self, when: float) -> None:
        """Drop what has to go at a time, unless that happens earlier already."""
        loop, seconds = asyncio.get_running_loop(), when - time.time()
        due = max(loop.time() + seconds, self._last_drop + _PAUSE_SECONDS)
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = loop.call_at(due, self._begin_drop)

    def _begin_drop(self) -> None:
        self._timer = None
        self._dropping = asyncio.ensure_future(self._drop())

    async def _drop(self) -> None:
        self._last_drop = asyncio.get_running_loop().time()
        for task_id in await self._database.execute(self._statements.drop_expired()):
            self._origins.pop(task_id, None)
        if self._result_bytes > self._statements.max_bytes:
            await self._database.execute(self._statements.drop_results())
            self._result_bytes = await self._database.execute(self._statements.count_bytes())
        next_expiry = await self._database.execute(self._statements.next_expiry())
        if next_expiry is not None:
            self._drop_at(next_expiry)


class _MemoryRun(StoredRun):
    """The only run of a task, with the caller that submitted it."""

    def __init__(self, engine: MemoryTaskEngine, memory: SqliteTasks, started: StartedRun, origin: Any) -> None:
        super().__init__(engine, memory, started)
        self.origin = origin
        self._engine = engine

    def send(self, message: bytes) -> None:
        """Send a message if its client listens; nobody else could send it later."""
        if self._engine.hears(self.record.id):
            super().send(message)

    async def ask(self, key: str, question: TaskQuestion, *, hold_seconds: float | None = None) -> bytes | None:
        """Ask; the code waits in place for as long as it takes, because parking it would free nothing."""
        return await super().ask(key, question)

    async def end(self, outcome: Outcome) -> bool:
        self._engine.note_result(outcome)
        ended = await super().end(outcome)
        await self._engine.look()  # whoever asks for the result from now on gets it after this change
        return ended
