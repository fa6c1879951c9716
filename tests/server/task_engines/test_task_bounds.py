"""What tasks may take: open ones of a caller, bytes of arguments, and results that are kept."""

import asyncio
import gc
import sqlite3
import time
import weakref
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Overloaded
from axolotl_core.task_engine import ITaskRun, NewTask, Outcome
from axolotl_server.extensions.tasks.engines import run_statements
from axolotl_server.extensions.tasks.engines.task_statements import TaskStatements
from tests.support.servers.serving import until
from tests.support.servers.task_engines import ENGINES, STORES, OpenEngine, opened, store_of

OWNER = b"owner"
MIB = 2**20
DONE = Outcome("completed", None, b'{"content":[]}')


class Gone:
    """A caller that may be gone."""


def task_of(size: int = 4, share: bytes | None = b"ada", **fields: Any) -> NewTask:
    return NewTask(OWNER, "render", b"x" * size, 60, share, **fields)


async def finish(run: ITaskRun) -> None:
    await run.end(DONE)


async def hang(run: ITaskRun) -> None:
    stopped = asyncio.Event()
    run.token.on_cancel(lambda reason: stopped.set())
    await stopped.wait()


async def finished(engine: OpenEngine, task: NewTask) -> str:
    """Run a task, and return its ID."""
    record = await engine.submit(task)
    await until(lambda: engine.seen(record.id)[-1:] == ["completed"])
    return record.id


async def kept(engine: OpenEngine, task_ids: list[str]) -> list[bool]:
    """Return which results are still there, once it was decided; the others are known to have been dropped."""
    await engine.tidy()
    found = [await engine.find(task_id, OWNER) for task_id in task_ids]
    assert all(record is not None and record.status == "completed" for record in found)
    return [record is not None and record.outcome is not None for record in found]


@pytest.mark.parametrize("kind", ENGINES)
async def test_ended_tasks_leave_room(kind: str) -> None:
    """Limits count open tasks: a caller that waits for each of its tasks starts as many as it likes, and reads all."""
    async with opened(kind, finish, maximum=2, per_caller=1) as engine:
        tasks = [await finished(engine, task_of()) for _ in range(10)]
        assert await kept(engine, tasks) == [True] * 10


@pytest.mark.parametrize("kind", ENGINES)
async def test_a_caller_loses_its_oldest_results(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many results of one caller the oldest are dropped, whose tasks are known to have ended."""
    monkeypatch.setattr(run_statements, "MOST_ENDED", 3)
    async with opened(kind, finish, per_caller=2) as engine:
        other = [await finished(engine, task_of(share=share)) for share in (b"bob", None, None, None, None)]
        tasks = [await finished(engine, task_of()) for _ in range(5)]
        assert await kept(engine, tasks) == [False, False, True, True, True]
        assert await kept(engine, other) == [True] * 5
        listed = [record.id for record in await engine.of(OWNER, 0, 100)]
        assert listed == [*other, *tasks[2:]]
        assert await engine.find(tasks[0], b"stranger") is None
        cancelled = await engine.cancel(tasks[0], OWNER, CancelReason.CLIENT)
        assert cancelled is None or cancelled.status == "completed"


@pytest.mark.parametrize("kind", ENGINES)
async def test_the_largest_results_are_dropped(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many bytes, callers with the most lose their oldest results; a task without a result counts a little."""

    async def run(run: ITaskRun) -> None:
        await run.end(Outcome("completed", None, run.call))

    monkeypatch.setattr(TaskStatements, "max_bytes", 45_000)
    async with opened(kind, run) as engine:
        other = [await finished(engine, task_of(size, b"bob")) for size in (5_000, 4)]
        tasks = [await finished(engine, task_of(6_000)) for _ in range(6)]
        assert await kept(engine, tasks) == [False, False, True, True, True, True]
        assert await kept(engine, other) == [True, True]
        small = [await finished(engine, task_of(share=b"eve")) for _ in range(40)]
        assert await kept(engine, [*other, small[-1]]) == [True] * 3
        assert 5 < sum(await kept(engine, small)) < 20


@pytest.mark.parametrize("kind", ENGINES)
async def test_few_dropped_results_are_remembered(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of results that were dropped is limited too."""
    monkeypatch.setattr(run_statements, "MOST_DROPPED", 2)
    monkeypatch.setattr(run_statements, "MOST_ENDED", 1)
    async with opened(kind, finish, per_caller=1) as engine:
        tasks = [await finished(engine, task_of()) for _ in range(5)]
        assert await kept(engine, tasks[2:]) == [False, False, True]
        assert [await engine.find(task_id, OWNER) for task_id in tasks[:2]] == [None, None]


@pytest.mark.parametrize("kind", ENGINES)
async def test_large_arguments_are_limited_in_bytes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arguments of open tasks may take a number of bytes in all, half of it for one caller."""
    monkeypatch.setattr(TaskStatements, "max_bytes", 4 * MIB)
    async with opened(kind, hang, works=False, per_caller=1000) as engine:
        tasks = {share: await accepted(engine, task_of(380_000, share)) for share in (b"ada", b"bob", b"eve", None)}
        assert {share: len(ids) for share, ids in tasks.items()} == {b"ada": 5, b"bob": 5, b"eve": 1, None: 0}
        await engine.submit(task_of(1000))
        await engine.cancel(tasks[b"ada"][0], OWNER, CancelReason.CLIENT)
        await engine.submit(task_of(380_000))


async def accepted(engine: OpenEngine, task: NewTask) -> list[str]:
    """Submit a task again and again, until its arguments would take too much."""
    tasks: list[str] = []
    with suppress(Overloaded):
        while len(tasks) < 10:
            tasks.append((await engine.submit(task)).id)
    with pytest.raises(Overloaded, match="There are too many tasks with large arguments; try again later"):
        await engine.submit(task)
    return tasks


async def test_a_refused_task_leaves_nothing(tmp_path: Path) -> None:
    """A task that exceeds a limit gets no place in the queue."""
    place = f"sqlite:///{tmp_path}/tasks.db"
    async with opened("sqlite", hang, works=False, place=place, per_caller=1) as engine:
        await engine.submit(task_of())
        for _ in range(3):
            with pytest.raises(Overloaded, match="one caller may have 1 open"):
                await engine.submit(task_of())
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as database:
        assert database.execute("select count(*) from tasks").fetchall() == [(1,)]


@pytest.mark.parametrize("kind", ENGINES)
async def test_a_refused_task_is_forgotten(kind: str) -> None:
    """The error of a refused task, which holds its arguments, is freed without a collection of garbage."""
    async with opened(kind, hang, works=False, per_caller=1) as engine:
        record = await engine.submit(task_of())
        gc.disable()
        try:
            try:
                await engine.submit(task_of(MIB))
            except Overloaded as error:
                refused = weakref.ref(error)
            await engine.find(record.id, OWNER)
            await until(lambda: refused() is None)
        finally:
            gc.enable()


async def test_a_task_that_is_cancelled_before_it_begins_is_forgotten() -> None:
    """The caller of a task in memory, which waits for its run, is freed when the task is cancelled instead."""
    origin = Gone()
    left = weakref.ref(origin)
    async with opened("memory", hang, works=False) as engine:
        record = await engine.submit(task_of(origin=origin))
        del origin
        assert left() is not None
        await engine.cancel(record.id, OWNER, CancelReason.CLIENT)
        gc.collect()
        assert left() is None


async def test_a_task_that_expires_before_it_begins_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task in memory whose caller was forgotten after it was claimed is left out: nobody would hear of its result."""
    ran: list[str] = []

    async def note(run: ITaskRun) -> None:
        ran.append(run.record.id)
        await finish(run)

    async with opened("memory", note) as engine:
        others = [await finished(engine, task_of(origin="ada"))]  # the worker works now, and claims at once
        gone = await engine.submit(task_of(origin="ada"))
        with monkeypatch.context() as patched:
            patched.setattr("time.time", lambda at=time.time: at() + 120)
            await engine.tidy()
        others.append(await finished(engine, task_of(origin="ada")))
        assert ran == others
        assert await engine.find(gone.id, OWNER) is None


@pytest.mark.parametrize("kind", STORES)
async def test_a_worker_holds_few_bytes_of_arguments(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that finds more than it may hold runs large calls one after the other, and small ones at once."""
    held, most = [0], [0]

    async def run(run: ITaskRun) -> None:
        held[0] += len(run.call)
        most[0] = max(most[0], held[0])
        await step.wait()
        held[0] -= len(run.call)
        await run.end(DONE)

    step = asyncio.Event()
    with store_of(kind) as url:
        async with opened(kind, hang, works=False, place=url) as engine:
            large = [(await engine.submit(task_of(MIB))).id for _ in range(8)]
            small = (await engine.submit(task_of())).id
        monkeypatch.setattr(TaskStatements, "max_bytes", 3 * MIB)
        async with opened(kind, run, place=url, lease_seconds=30) as engine:
            await engine.began(3)
            step.set()
            tasks = [*large, small]
            await until(lambda: all(engine.seen(task_id)[-1:] == ["completed"] for task_id in tasks))
    assert engine.runs == 9
    assert MIB < most[0] < 3 * MIB


async def test_one_caller_in_two_processes() -> None:
    """Tasks that one caller submits to several processes at the same moment do not exceed its limit."""
    with store_of("postgres") as url:
        limits: Any = {"works": False, "place": url, "per_caller": 20}
        async with opened("", hang, **limits) as one, opened("", hang, **limits) as other:
            submitting = [engine.submit(task_of()) for _ in range(40) for engine in (one, other)]
            done = await asyncio.gather(*submitting, return_exceptions=True)
            assert sum(isinstance(result, Overloaded) for result in done) == 60
            assert len(await one.of(OWNER, 0, 100)) == 20
