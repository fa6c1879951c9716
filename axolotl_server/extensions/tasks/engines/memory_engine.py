"""The task engine of a single process: tasks are kept in memory, limited in number and in time."""

import asyncio
import itertools
import secrets
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from axolotl_core.calls.cancellation import CancellationToken, CancelReason
from axolotl_core.task_engine import (
    ITaskEngine,
    ITaskListener,
    ITaskRunner,
    NewTask,
    Outcome,
    TaskChange,
    TaskCounts,
    TaskQuestion,
    TaskRecord,
)
from axolotl_server.extensions.tasks.engines.task_states import (
    ENDED_BYTES,
    LARGE_CALL_BYTES,
    MOST_DROPPED,
    cancelled_by,
    most_ended,
    now_text,
    shutting_down,
    too_large_together,
    too_many,
    too_many_of_one,
)
from axolotl_server.protocol.fair_share import is_used_up
from axolotl_server.settings.calls import TaskSettings

_STOP_GRACE_SECONDS = 1.0


class _MemoryRun:
    """A task in memory, and its only run."""

    def __init__(self, task: NewTask, record: TaskRecord, engine: "MemoryTaskEngine") -> None:
        self.record = record
        self.call = task.call
        self.origin = task.origin
        self.share = task.share
        self.key = task.key
        self.expires = time.monotonic() + task.ttl_seconds
        self.answers: Mapping[str, bytes] = {}
        self.kept: Mapping[str, bytes] = {}
        self.token = CancellationToken()
        self.ended_bytes = ENDED_BYTES
        self._engine = engine
        self._waiting: dict[str, asyncio.Future[bytes]] = {}

    @property
    def open(self) -> bool:
        """Whether the task has not ended."""
        return self.record.open

    def send(self, message: bytes) -> None:
        if self.open:
            self._engine.report(TaskChange(self.record, is_status=False, messages=(message,)))

    async def ask(self, key: str, question: TaskQuestion, *, hold_seconds: float | None = None) -> bytes | None:
        """Ask; the code waits in place for as long as it takes, because parking it would free nothing."""
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[key] = answered
        self._change(questions={**self.record.questions, key: question}, status="input_required")
        try:
            return await answered
        finally:
            self._waiting.pop(key, None)
            self._forget(key)

    def take(self, answers: Mapping[str, bytes]) -> frozenset[str]:
        """Give answers to the code that waits for them."""
        taken = frozenset(answers).intersection(self.record.questions)
        for key in taken:
            self.answers = {**self.answers, key: answers[key]}
            answered = self._waiting.pop(key)
            if not answered.done():  # otherwise the code that asked has just been stopped
                answered.set_result(answers[key])
            self._forget(key)
        return taken

    async def keep(self, key: str, value: bytes) -> None:
        self.kept = {**self.kept, key: value}

    async def release(self) -> None:
        """Cancel the task: nothing can run it later."""
        self.cancel(CancelReason.SHUTDOWN)

    async def end(self, outcome: Outcome) -> bool:
        return self._end(outcome)

    def cancel(self, reason: CancelReason) -> None:
        """End the task without a result, and stop its code."""
        self._end(cancelled_by(reason))
        self.token.cancel(reason)

    def _end(self, outcome: Outcome) -> bool:
        if not self.open:
            return False
        self.ended_bytes += 0 if outcome.result is None else len(outcome.result)
        waiting, self._waiting = self._waiting, {}
        self._change(questions={}, status=outcome.status, message=outcome.message, outcome=outcome)
        for answered in waiting.values():
            answered.cancel()
        self.call, self.origin = b"", None
        self._engine.note_end(self)
        return True

    def _forget(self, key: str) -> None:
        """Remove a question that is answered or withdrawn."""
        if key not in self.record.questions:
            return
        questions = {name: question for name, question in self.record.questions.items() if name != key}
        if questions:
            self.record = replace(self.record, questions=questions)
            self._engine.report(TaskChange(self.record, is_status=False))
        else:
            self._change(questions={}, status="working")

    def _change(self, **fields: Any) -> None:
        self.record = replace(self.record, **{"message": None, **fields}, updated_at=now_text())
        self._engine.report(TaskChange(self.record))


class MemoryTaskEngine(ITaskEngine):
    """The tasks of this process. They end with it."""

    durable = False

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        self._next_number = itertools.count(1).__next__
        self._runs: dict[str, _MemoryRun] = {}
        self._open: dict[str, _MemoryRun] = {}
        self._ended: dict[bytes | None, dict[str, _MemoryRun]] = defaultdict(dict)
        """Those that have ended, by whom they count for, in the order in which they ended."""
        self._ended_bytes: Counter[bytes | None] = Counter()
        """Their size, by whom they count for."""
        self._dropped: OrderedDict[str, TaskRecord] = OrderedDict()
        """Tasks whose results were dropped, without them."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._listener: ITaskListener | None = None
        self._runner: asyncio.Future[ITaskRunner] | None = None
        self._closed = False

    @property
    def kept(self) -> int:
        return len(self._runs)

    @property
    def counts(self) -> TaskCounts:
        return TaskCounts(Counter((run.record.tool, run.record.status) for run in self._open.values()))

    async def open(self, listener: ITaskListener) -> None:
        self._listener = listener
        self._runner = asyncio.get_running_loop().create_future()

    async def submit(self, task: NewTask) -> TaskRecord:
        known = self._with_key(task)
        if known is not None:
            return known
        self._check_room(task)
        now = now_text()
        record = TaskRecord(
            id=secrets.token_hex(16),
            number=self._next_number(),
            owner=task.owner,
            tool=task.tool,
            created_at=now,
            updated_at=now,
            ttl_seconds=task.ttl_seconds,
            expires_at=time.time() + task.ttl_seconds,
            run=1,
        )
        run = self._runs[record.id] = self._open[record.id] = _MemoryRun(task, record, self)
        self._expire_later(run)
        running = asyncio.get_running_loop().create_task(self._run(run))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return record

    async def find(self, task_id: str, owner: bytes | None) -> TaskRecord | None:
        run = self._find(task_id, owner)
        if run is not None:
            return run.record
        dropped = self._dropped.get(task_id)
        if dropped is None or owner not in (None, dropped.owner) or dropped.expires_at <= time.time():
            return None
        return dropped

    async def of(self, owner: bytes | None, after: int, count: int) -> Sequence[TaskRecord]:
        now = time.monotonic()
        found = (
            run.record
            for run in self._runs.values()
            if run.record.number > after and owner in (None, run.record.owner) and run.expires > now
        )
        return tuple(itertools.islice(found, count))

    async def answer(self, task_id: str, owner: bytes, answers: Mapping[str, bytes]) -> frozenset[str]:
        run = self._find(task_id, owner)
        return frozenset() if run is None else run.take(answers)

    async def cancel(self, task_id: str, owner: bytes | None, reason: CancelReason) -> TaskRecord | None:
        run = self._find(task_id, owner)
        if run is None:
            return None
        run.cancel(reason)
        return run.record

    async def work(self, runner: ITaskRunner) -> None:
        assert self._runner is not None
        self._runner.set_result(runner)
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Refuse further tasks and stop all calls; their code gets a moment to end, once."""
        again, self._closed = self._closed, True
        if self._runner is not None:
            self._runner.cancel()
        for task_id in tuple(self._runs):
            self._drop(task_id, CancelReason.SHUTDOWN)
        if self._running and not again:
            await asyncio.wait(self._running, timeout=_STOP_GRACE_SECONDS)

    def report(self, change: TaskChange) -> None:
        """Report a change to the server."""
        if self._listener is not None:
            self._listener.task_changed(change)

    def note_end(self, run: _MemoryRun) -> None:
        """Count a task that has ended. Of too many of one caller, and of too many bytes, the oldest are dropped."""
        if self._open.pop(run.record.id, None) is None:
            return
        self._ended[run.share][run.record.id] = run
        self._ended_bytes[run.share] += run.ended_bytes
        limit = most_ended(self._settings, run.share)
        if limit is not None and len(self._ended[run.share]) > limit:
            self._drop_oldest(run.share)
        while self._ended_bytes.total() > self._settings.max_bytes:
            [(largest, _)] = self._ended_bytes.most_common(1)
            self._drop_oldest(largest)

    async def _run(self, run: _MemoryRun) -> None:
        assert self._runner is not None
        runner = await self._runner
        await asyncio.sleep(0)  # so that the task is known before it runs, also if the loop starts its tasks at once
        if run.open:  # otherwise it was cancelled, or has expired, before it could begin
            await runner.run(run)
        run.answers, run.kept = {}, {}  # nobody counts their bytes

    def _find(self, task_id: str, owner: bytes | None) -> _MemoryRun | None:
        run = self._runs.get(task_id)
        if run is None or owner not in (None, run.record.owner) or run.expires <= time.monotonic():
            return None
        return run

    def _with_key(self, task: NewTask) -> TaskRecord | None:
        if task.key is None:
            return None
        now = time.monotonic()
        open_runs = (run for run in self._open.values() if run.expires > now)
        same = (run.record for run in open_runs if (run.key, run.record.owner) == (task.key, task.owner))
        return next(same, None)

    def _check_room(self, task: NewTask) -> None:
        """Raise Overloaded if there are too many tasks, of all callers or of this one, or if the server is stopping."""
        settings = self._settings
        if self._closed:
            raise shutting_down(settings)
        if len(self._open) >= settings.maximum:
            raise too_many(settings)
        if is_used_up(task.share, settings.maximum_per_principal, self._open.values()):
            raise too_many_of_one(settings)
        if len(task.call) > LARGE_CALL_BYTES and self._has_too_many_bytes_with(task):
            raise too_large_together(settings)

    def _has_too_many_bytes_with(self, task: NewTask) -> bool:
        """Whether the calls of open tasks would take too much memory, half of it for one caller; one always fits."""
        sizes = [(run.share, len(run.call)) for run in self._open.values()]
        of_all = sum(size for _, size in sizes)
        of_one = 0 if task.share is None else sum(size for share, size in sizes if share == task.share)
        size, limit = len(task.call), self._settings.max_bytes
        return (of_all > 0 and of_all + size > limit) or (of_one > 0 and of_one + size > limit // 2)

    def _expire_later(self, run: _MemoryRun) -> None:
        seconds = max(0.0, run.expires - time.monotonic())
        self._timers[run.record.id] = asyncio.get_running_loop().call_later(seconds, self._expire, run)

    def _expire(self, run: _MemoryRun) -> None:
        """Drop an expired task; a timer may fire early, because the loop has another clock."""
        if run.expires > time.monotonic():
            self._expire_later(run)
        else:
            self._drop(run.record.id, CancelReason.TIMEOUT)

    def _drop_oldest(self, share: bytes | None) -> None:
        """Drop the oldest result of a caller, and remember for a while that it was there."""
        task_id, run = next(iter(self._ended[share].items()))
        self._drop(task_id, CancelReason.TIMEOUT)
        self._dropped[task_id] = replace(run.record, message=None, outcome=None)
        if len(self._dropped) > MOST_DROPPED:
            self._dropped.popitem(last=False)

    def _drop(self, task_id: str, reason: CancelReason) -> None:
        self._timers.pop(task_id).cancel()
        run = self._runs.pop(task_id)
        if self._open.pop(task_id, None) is None:
            self._forget_ended(run)
        run.cancel(reason)

    def _forget_ended(self, run: _MemoryRun) -> None:
        del self._ended[run.share][run.record.id]
        self._ended_bytes[run.share] -= run.ended_bytes
        if not self._ended[run.share]:
            del self._ended[run.share], self._ended_bytes[run.share]
