"""Task engines compared with a simple model: random submissions, questions, ends and times."""

import asyncio
import time
from collections.abc import Coroutine, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.task_engine import ITaskRun, NewTask, Outcome, TaskQuestion
from axolotl_server.extensions.tasks.engines import memory_engine, run_statements, stored_engine, task_statements
from tests.support.servers.serving import until
from tests.support.servers.task_engines import opened

pytestmark = pytest.mark.slow

ValueT = TypeVar("ValueT")

OTHER = {b"ada": b"bob", b"bob": b"ada"}
OWNERS = st.sampled_from(sorted(OTHER))
RARELY = st.sampled_from([False, False, False, True])
CHOICE = st.integers(0, 100)
DONE = Outcome("completed", None, b"{}")
QUESTION = TaskQuestion("elicitation/create", {"message": "How many?"}, "digest")


@dataclass
class Expected:
    """A task as the model knows it."""

    owner: bytes
    key: bytes | None
    expires: float
    status: str = "working"
    run: int = 1
    parked: bool = False
    kept: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, bytes] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        return self.status in ("working", "input_required")


class TaskMachine(RuleBasedStateMachine):
    """Random operations on an engine; the model knows what every caller must see."""

    kind: str

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self.patch = pytest.MonkeyPatch()
        self.start, self.shift = time.time(), 0.0
        clock = SimpleNamespace(time=self.now, monotonic=self.now)  # it stands still between two steps
        for module in (memory_engine, run_statements, stored_engine, task_statements):
            self.patch.setattr(module, "time", clock)
        self.tasks: dict[str, Expected] = {}
        self.runs: dict[str, ITaskRun] = {}
        self.over: dict[str, asyncio.Event] = {}
        self.asking: dict[str, asyncio.Future[bytes | None]] = {}
        self.engine = self.do(self.stack.enter_async_context(opened(self.kind, self.hold, lease_seconds=30.0)))

    def now(self) -> float:
        return self.start + self.shift

    def do(self, doing: Coroutine[Any, Any, ValueT]) -> ValueT:
        return self.loop.run_until_complete(doing)

    async def hold(self, run: ITaskRun) -> None:
        """Run until the machine ends the run."""
        over = self.over[run.record.id] = asyncio.Event()
        self.runs[run.record.id] = run
        await over.wait()

    async def stop(self, task_id: str) -> None:
        """Let the code of a run end, as if it had been stopped."""
        asking = self.asking.pop(task_id, None)
        if asking is not None:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
        self.over[task_id].set()

    def some(self, tasks: Iterable[str], choice: int) -> str:
        known = sorted(tasks, key=list(self.tasks).index)
        return known[choice % len(known)]

    def working(self) -> list[str]:
        return [task_id for task_id, task in self.tasks.items() if task.status == "working"]

    @rule(owner=OWNERS, key=st.sampled_from([None, None, b"key"]), ttl_seconds=st.sampled_from([55.0, 555.0, 555.0]))
    def submit(self, owner: bytes, key: bytes | None, ttl_seconds: float) -> None:
        """A task is new, unless an open one of the same owner has the key."""
        same = [i for i, task in self.tasks.items() if task.open and key and (task.owner, task.key) == (owner, key)]
        record = self.do(self.engine.submit(NewTask(owner, "render", b"call", ttl_seconds, key=key)))
        assert (record.id in self.tasks) is bool(same)
        if same:
            assert [record.id] == same
        else:
            self.tasks[record.id] = Expected(owner, key, record.expires_at)
            self.do(until(lambda: record.id in self.runs))

    @precondition(lambda self: self.working())
    @rule(choice=CHOICE, value=st.binary(max_size=4))
    def keep(self, choice: int, value: bytes) -> None:
        """A run keeps values."""
        task_id = self.some(self.working(), choice)
        self.do(self.runs[task_id].keep("step", value))
        self.tasks[task_id].kept["step"] = value

    @precondition(lambda self: self.working())
    @rule(choice=CHOICE, parks=st.booleans())
    def ask(self, choice: int, parks: bool) -> None:
        """A run asks; in a store, the task may be parked, and its run is over."""
        task_id = self.some(self.working(), choice)
        task = self.tasks[task_id]
        asked = self.runs[task_id].ask("amount", QUESTION, hold_seconds=0.0 if parks else None)
        asking = self.asking[task_id] = self.loop.create_task(asked)
        task.status, task.parked = "input_required", parks and self.kind != "memory"
        task.answers.pop("amount", None)
        if task.parked:
            assert self.do(_result(asking)) is None
            del self.asking[task_id], self.runs[task_id]
            self.over[task_id].set()
        else:
            self.do(self._asked(task_id))

    @precondition(lambda self: self.working())
    @rule(choice=CHOICE, value=st.binary(max_size=4))
    def continue_later(self, choice: int, value: bytes) -> None:
        """A task keeps a value, asks and continues, often enough to be seen in a short test."""
        self.keep(choice, value)
        self.ask(choice, parks=True)
        self.answer(choice, stranger=False, answer=b"later")

    async def _asked(self, task_id: str) -> None:
        while True:
            record = await self.engine.find(task_id, None)
            if record is not None and record.questions:
                return

    @precondition(lambda self: self.tasks)
    @rule(choice=CHOICE, stranger=RARELY, answer=st.binary(min_size=1, max_size=4))
    def answer(self, choice: int, stranger: bool, answer: bytes) -> None:
        """An answer of the owner counts once; a parked task runs again with all that it has kept."""
        asked = [task_id for task_id, task in self.tasks.items() if task.status == "input_required"]
        task_id = self.some(asked or self.tasks, choice)
        task = self.tasks[task_id]
        owner = OTHER[task.owner] if stranger else task.owner
        taken = self.do(self.engine.answer(task_id, owner, {"amount": answer, "other": b"x"}))
        if stranger or task.status != "input_required":
            assert taken == frozenset()
            return
        assert taken == {"amount"}
        task.status, task.answers["amount"] = "working", answer
        if task.parked:
            task.parked, task.run = False, task.run + 1
            self.do(until(lambda: task_id in self.runs))
            run = self.runs[task_id]
            assert (dict(run.kept), dict(run.answers)) == (task.kept, task.answers)
        else:
            assert self.do(_result(self.asking.pop(task_id))) == answer

    @precondition(lambda self: self.working())
    @rule(choice=CHOICE)
    def end(self, choice: int) -> None:
        """A run ends its task once."""
        task_id = self.some(self.working(), choice)
        assert self.do(self.runs[task_id].end(DONE))
        assert not self.do(self.runs[task_id].end(Outcome("failed", "late")))
        self.tasks[task_id].status = "completed"
        self.do(self.stop(task_id))

    @precondition(lambda self: self.tasks)
    @rule(choice=CHOICE, stranger=st.booleans())
    def cancel(self, choice: int, stranger: bool) -> None:
        """The owner can cancel an open task, which stops its run; one that has ended does not change."""
        task_id = self.some(self.tasks, choice)
        task = self.tasks[task_id]
        owner = OTHER[task.owner] if stranger else task.owner
        record = self.do(self.engine.cancel(task_id, owner, CancelReason.CLIENT))
        if stranger:
            assert record is None
            return
        was_open, task.status = task.open, "cancelled" if task.open else task.status
        assert record is not None
        assert record.status == task.status
        if was_open and not task.parked:
            run = self.runs[task_id]
            self.do(until(lambda: run.token.cancelled))
            assert not self.do(run.end(DONE))
            self.do(self.stop(task_id))

    @rule(seconds=st.sampled_from([10.0, 60.0]))
    def pass_time(self, seconds: float) -> None:
        """Tasks whose time is up are gone for everybody."""
        self.shift += seconds
        for task_id in [task_id for task_id, task in self.tasks.items() if task.expires <= self.now()]:
            task = self.tasks.pop(task_id)
            assert self.do(self.engine.find(task_id, None)) is None
            assert self.do(self.engine.answer(task_id, task.owner, {"amount": b"1"})) == frozenset()
            if task.open and not task.parked:
                self.do(self.stop(task_id))

    @invariant()
    def everybody_sees_the_same(self) -> None:
        """Owners see their tasks, in order, and nobody else does."""
        for owner in OTHER:
            listed = self.do(self.engine.of(owner, 0, 1000))
            assert [one.id for one in listed] == [i for i, task in self.tasks.items() if task.owner == owner]
        for task_id, task in self.tasks.items():
            assert self.do(self.engine.find(task_id, OTHER[task.owner])) is None
            record = self.do(self.engine.find(task_id, task.owner))
            assert record is not None
            assert (record.status, record.run) == (task.status, task.run)
            assert set(record.questions) == ({"amount"} if task.status == "input_required" else set())
            assert record.outcome == (DONE if task.status == "completed" else record.outcome)

    def teardown(self) -> None:
        for task_id in self.over:
            self.do(self.stop(task_id))
        self.do(self.stack.aclose())
        self.patch.undo()
        self.loop.close()


async def _result(asking: "asyncio.Future[bytes | None]") -> bytes | None:
    return await asking


class MemoryMachine(TaskMachine):
    kind = "memory"


class SqliteMachine(TaskMachine):
    kind = "sqlite"


SHORT = settings(max_examples=20, stateful_step_count=20, deadline=None)

TestMemoryEngine = MemoryMachine.TestCase
TestMemoryEngine.settings = SHORT
TestSqliteEngine = SqliteMachine.TestCase
TestSqliteEngine.settings = SHORT
