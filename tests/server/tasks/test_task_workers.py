"""Workers that share a store: limits, lost workers, zombies, version skew and tidiness."""

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.task_engine import ITaskRun, NewTask, Outcome, TaskQuestion, TasksUnavailable, UnknownCall
from axolotl_server.extensions.tasks.engines import sqlite_writer, stored_engine
from axolotl_server.extensions.tasks.engines.assembly import make_database
from axolotl_server.extensions.tasks.engines.postgres_worker import PostgresStatements, TakenJob
from axolotl_server.extensions.tasks.engines.stored_engine import StoredTaskEngine
from axolotl_server.extensions.tasks.engines.task_statements import Operation, TaskStatements
from axolotl_server.settings.server import ServerSettings
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.servers.task_engines import KEY, STORES, OpenEngine, change_store, opened, store_of

DONE = Outcome("completed", None, b"{}")
OWNER = b"owner"
LONG_LEASE: Mapping[str, Any] = {"lease_seconds": 30.0}


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty store."""
    with store_of(request.param) as place:
        assert place is not None
        yield place


@pytest.fixture
def postgres() -> Iterator[str]:
    """The URL of an empty store in Postgres, where places in the queue are not the tasks themselves."""
    with store_of("postgres") as place:
        assert place is not None
        yield place


def task_of(tool: str = "render", ttl_seconds: float = 60) -> NewTask:
    return NewTask(OWNER, tool, b"call", ttl_seconds)


async def ended(engine: OpenEngine, task_id: str) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            record = await engine.find(task_id, OWNER)
            if record is None or not record.open:
                return record
            await asyncio.sleep(0.005)  # sleeps: another worker ends the task, which has no event here


async def forget_workers(url: str) -> None:
    """Let all workers look as if they had given no sign of life for long."""
    await asyncio.to_thread(
        change_store,
        url,
        "update tasks set due_at = 0 where state = 'running'",
        "update axolotl.queue set heartbeat = 'epoch' where status = 'picked'",
    )


class Gate:
    """A run that waits until it is released."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.release = asyncio.Event()
        self.reasons: list[CancelReason] = []
        self.writes: list[bool] = []

    async def __call__(self, run: ITaskRun) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        stopped = asyncio.Event()

        def stop(reason: CancelReason) -> None:
            self.reasons.append(reason)
            stopped.set()

        run.token.on_cancel(stop)
        waits = [asyncio.ensure_future(event.wait()) for event in (stopped, self.release)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        self.running -= 1
        self.writes.append(await run.end(DONE))


async def test_a_worker_runs_only_so_many(url: str) -> None:
    """A worker takes no more tasks than it may run at once."""
    gate = Gate()
    async with opened("", gate, place=url, concurrency=3) as engine:
        tasks = [await engine.submit(task_of()) for _ in range(10)]
        await until(lambda: gate.running == 3)
        gate.release.set()
        for task in tasks:
            assert (await ended(engine, task.id)).status == "completed"
        assert gate.most == 3


async def test_a_limit_holds_for_all_workers(url: str) -> None:
    """The limit of a tool is not exceeded by several workers together."""
    gate, tools = Gate(), {"render": 2, "cut": 0}
    async with opened("", gate, place=url, tools=tools) as one, opened("", gate, place=url, tools=tools):
        tasks = [await one.submit(task_of()) for _ in range(8)]
        await until(lambda: gate.running == 2)
        await asyncio.sleep(0.1)  # sleeps: gives the workers time to exceed the limit
        assert gate.most == 2
        gate.release.set()
        for task in tasks:
            assert (await ended(one, task.id)).status == "completed"
        assert gate.most == 2


async def test_a_lost_worker_is_replaced(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """The task of a worker that gives no sign of life runs again, also if its tool has a limit.

    The old run is stopped and writes nothing.
    """
    old, new, tools = Gate(), Gate(), {"render": 1}
    new.release.set()
    async with opened("", old, place=url, tools=tools, **LONG_LEASE) as zombie:
        task = await zombie.submit(task_of())
        await until(lambda: old.running == 1)
        await zombie.end_work()
        await forget_workers(url)
        async with opened("", new, place=url, tools=tools, **LONG_LEASE) as engine:
            record = await ended(engine, task.id)
            assert (record.status, record.run) == ("completed", 2)
        taken_over = f"task {task.id} of tool render is taken over, as run 2: the worker that ran it is gone"
        assert caplog.messages.count(taken_over) == 1
        await until(lambda: bool(old.writes))
        assert (old.reasons, old.writes) in (([CancelReason.LOST], [False]), ([CancelReason.CLIENT], [False]))


async def test_a_run_keeps_its_task(tmp_path: Path) -> None:
    """A worker postpones again and again when others may take over what it runs."""
    gate = Gate()
    async with opened("", gate, place=f"sqlite:///{tmp_path}/tasks.db", lease_seconds=3.0) as engine:
        await engine.submit(task_of())
        await until(lambda: gate.running == 1)
        with closing(sqlite3.connect(tmp_path / "tasks.db")) as store:
            due = "select due_at from tasks where state = 'running' and run = 1"
            [first] = store.execute(due).fetchone()
            await until(lambda: store.execute(due).fetchone()[0] > first)
        gate.release.set()


async def test_a_task_that_must_not_restart_fails(url: str) -> None:
    """A task of a tool that must not restart fails if its worker is lost."""
    old, new = Gate(), Gate()
    async with opened("", old, place=url, **LONG_LEASE) as zombie:
        task = await zombie.submit(task_of())
        await until(lambda: old.running == 1)
        await zombie.end_work()
        await forget_workers(url)
        async with opened("", new, place=url, works=False, **LONG_LEASE) as engine:
            engine.restartable = False
            engine.begin_work()
            record = await ended(engine, task.id)
            assert (record.status, record.message) == ("failed", "The worker that ran it is gone")
            assert new.most == 0


async def test_a_task_that_kills_its_workers_fails(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After too many lost workers a task is not tried again."""
    monkeypatch.setattr(stored_engine, "MAX_LOSSES", 2)
    gates = [Gate() for _ in range(3)]
    async with opened("", gates[0], place=url, **LONG_LEASE) as first:
        task = await first.submit(task_of())
        await until(lambda: gates[0].running == 1)
        await first.end_work()
        await forget_workers(url)
        async with opened("", gates[1], place=url, **LONG_LEASE) as second:
            await until(lambda: gates[1].running == 1)
            await second.end_work()
            await forget_workers(url)
            async with opened("", gates[2], place=url, **LONG_LEASE) as third:
                assert (await ended(third, task.id)).status == "failed"
                assert gates[2].most == 0


async def test_a_worker_takes_only_tasks_of_its_tools(url: str) -> None:
    """A task of a tool that no worker has waits."""
    gate = Gate()
    gate.release.set()
    async with opened("", gate, place=url, tools={"render": 0}) as engine:
        other = await engine.submit(task_of("cut"))
        assert (await ended(engine, (await engine.submit(task_of())).id)).status == "completed"
        record = await engine.find(other.id, OWNER)
        assert record is not None
        assert (record.status, record.run) == ("working", 0)
        async with opened("", gate, place=url, tools={"cut": 0}):
            assert (await ended(engine, other.id)).status == "completed"


async def test_tasks_without_a_worker_are_named(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """The log names a tool whose tasks no worker begins, once."""
    async with opened("", Gate(), place=url, works=False, lease_seconds=0.2) as engine:
        await engine.submit(task_of("cut"))
        await until(lambda: "tasks of tool cut wait for a worker" in caplog.text)
        await engine.tidy()
        assert caplog.text.count("tasks of tool cut") == 1


async def test_a_call_of_another_version_waits(url: str) -> None:
    """A worker returns a call that it does not understand, and another one runs it."""
    tried: list[str] = []

    async def refuse(run: ITaskRun) -> None:
        tried.append(run.record.id)
        raise UnknownCall("another version")

    gate = Gate()
    gate.release.set()
    async with opened("", refuse, place=url, lease_seconds=0.2) as engine:
        task = await engine.submit(task_of())
        await until(lambda: tried == [task.id])
        await engine.end_work()
        async with opened("", gate, place=url, lease_seconds=0.2):
            assert (await ended(engine, task.id)).status == "completed"


async def test_answers_and_values_survive_a_worker(url: str) -> None:
    """A later run knows the answers and the values of earlier ones."""
    question = TaskQuestion("elicitation/create", {}, "digest")
    seen: list[Any] = []

    async def ask(run: ITaskRun) -> None:
        await run.keep("charge", b"receipt")
        await run.ask("amount", question)
        await asyncio.Event().wait()

    async def finish(run: ITaskRun) -> None:
        seen.append((run.record.run, dict(run.answers), dict(run.kept)))
        await run.end(DONE)

    async with opened("", ask, place=url, **LONG_LEASE) as zombie:
        task = await zombie.submit(task_of())
        await until_asked(zombie, task.id)
        await zombie.answer(task.id, OWNER, {"amount": b"3"})
        await zombie.end_work()
        await forget_workers(url)
        async with opened("", finish, place=url, **LONG_LEASE) as engine:
            await ended(engine, task.id)
    assert seen == [(2, {"amount": b"3"}, {"charge": b"receipt"})]


async def test_a_parked_task_has_one_place_in_the_queue(url: str) -> None:
    """If a worker dies right after it has parked a task, the task runs once when it is answered, not twice."""
    parked, gate = asyncio.Event(), Gate()

    async def ask(run: ITaskRun) -> None:
        assert await run.ask("amount", TaskQuestion("elicitation/create", {}, "digest"), hold_seconds=0.0) is None
        parked.set()
        stopped = asyncio.Event()
        run.token.on_cancel(lambda reason: stopped.set())
        await stopped.wait()

    async with opened("", ask, place=url, **LONG_LEASE) as dying:
        task = await dying.submit(task_of())
        await parked.wait()
        await dying.end_work()
        await forget_workers(url)
        async with opened("", gate, place=url, **LONG_LEASE) as engine:
            await engine.answer(task.id, OWNER, {"amount": b"3"})
            await until(lambda: gate.running == 1)
            await asyncio.sleep(0.2)  # sleeps: gives the worker time to begin another run
            gate.release.set()
            record = await ended(engine, task.id)
    assert (record.status, record.run, gate.most) == ("completed", 2, 1)


async def test_a_run_is_parked_although_the_reply_is_lost(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that breaks while a task is being parked does not leave its code waiting."""
    parked = asyncio.Event()
    parks: list[bool] = []

    async def ask(run: ITaskRun) -> None:
        assert await run.ask("amount", TaskQuestion("elicitation/create", {}, "digest"), hold_seconds=0.0) is None
        parked.set()

    async with opened("", ask, place=url, **LONG_LEASE) as engine:
        assert isinstance(engine.engine, StoredTaskEngine)
        execute = engine.engine._database.execute

        async def lose_the_first_reply(operation: Operation[Any], **options: Any) -> Any:
            result = await execute(operation, **options)
            if getattr(operation, "__name__", "") == "park":
                parks.append(result)
                if len(parks) == 1:
                    raise TasksUnavailable("the connection is lost")
            return result

        monkeypatch.setattr(engine.engine._database, "execute", lose_the_first_reply)
        await engine.submit(task_of())
        async with asyncio.timeout(PATIENCE_SECONDS):
            await parked.wait()
    assert parks == [True, True]


async def test_a_job_that_another_worker_has_begins_nothing(postgres: str) -> None:
    """A worker that was paused before it could begin a task does not disturb the one that has taken its place."""
    gate = Gate()
    settings = ServerSettings.model_validate({"tasks": {"url": postgres}, "protocol": {"state_keys": [KEY]}})
    database = make_database(settings)
    await database.open(print)
    statements = database.statements
    assert isinstance(statements, PostgresStatements)
    async with opened("", gate, place=postgres, works=False) as engine:
        task = await engine.submit(task_of())
        paused = TakenJob(1, "the worker that had the job before", "render")
        assert await database.execute(statements.begin_first(task.id, paused)) is None
        engine.begin_work()
        await until(lambda: gate.running == 1)
        assert await database.execute(statements.begin_next(task.id, paused)) is None
        gate.release.set()
        assert (await ended(engine, task.id)).run == 1
    await database.close()


async def until_asked(engine: OpenEngine, task_id: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            record = await engine.find(task_id, OWNER)
            if record is not None and record.status == "input_required":
                return
            await asyncio.sleep(0.005)  # sleeps: the store has no event for a question


async def test_a_task_without_a_job_is_found(postgres: str) -> None:
    """A task that has lost its place in the queue gets a new one."""
    gate = Gate()
    gate.release.set()
    async with opened("", gate, place=postgres, works=False) as engine:
        task = await engine.submit(task_of())
        await asyncio.to_thread(change_store, postgres, "", "delete from axolotl.queue")
        await engine.tidy()
        engine.begin_work()
        assert (await ended(engine, task.id)).status == "completed"


@pytest.mark.parametrize(
    ("column", "value", "status"),
    [
        ("due_at", "'soon'", "working"),
        ("call", "'text'", "failed"),
        ("owner", "'ada'", "working"),
        ("expires_at", "'never'", "failed"),
        ("run", "'many'", "completed"),
    ],
)
async def test_rows_with_wrong_types(
    tmp_path: Path, column: str, value: str, status: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows with values of wrong types delay no other task; those that cannot run fail, if that can be stored."""
    gate = Gate()
    gate.release.set()
    url = f"sqlite:///{tmp_path}/tasks.db"
    async with opened("", gate, place=url, works=False, **LONG_LEASE) as engine:
        tasks = [await engine.submit(task_of()) for _ in range(4)]
        change_store(url, f"update tasks set {column} = {value} where number <= 3", "")
        engine.begin_work()
        assert (await ended(engine, tasks[3].id)).status == "completed"
        assert "taking tasks from the queue failed" not in caplog.text
        with closing(sqlite3.connect(tmp_path / "tasks.db")) as store:
            await until(
                lambda: store.execute("select distinct status from tasks where number <= 3").fetchall() == [(status,)]
            )


async def test_a_job_of_another_tool_begins_nothing(postgres: str) -> None:
    """A task whose place in the queue was given to another tool runs only where its own tool is."""
    gate, other = Gate(), Gate()
    gate.release.set()
    other.release.set()
    async with opened("", gate, place=postgres, works=False, tools={"render": 0}) as engine:
        moved = await engine.submit(task_of("cut"))
        await asyncio.to_thread(change_store, postgres, "", "update axolotl.queue set entrypoint = 'render'")
        task = await engine.submit(task_of())
        engine.begin_work()
        assert (await ended(engine, task.id)).status == "completed"
        async with opened("", other, place=postgres, tools={"cut": 0}):
            assert (await ended(engine, moved.id)).status == "completed"
        assert (engine.runs, other.most) == (1, 1)


async def test_a_worker_survives_a_file_that_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If another process locks the file for too long, a worker says so, and takes tasks as soon as it can."""
    monkeypatch.setattr(sqlite_writer, "_BUSY_SECONDS", 0.01)
    gate = Gate()
    gate.release.set()
    async with opened("", gate, place=f"sqlite:///{tmp_path}/tasks.db", works=False) as engine:
        task = await engine.submit(task_of())
        with closing(sqlite3.connect(tmp_path / "tasks.db", isolation_level=None)) as other:
            other.execute("begin immediate")
            engine.begin_work()
            await until(lambda: "The queue of tasks is unavailable" in caplog.text)
        assert (await ended(engine, task.id)).status == "completed"


async def test_processes_drop_results_at_the_same_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that find too many results drop them together, and neither fails."""

    async def end(run: ITaskRun) -> None:
        await run.end(Outcome("completed", None, b"x" * 1000))

    monkeypatch.setattr(TaskStatements, "max_bytes", 5000)
    async with (
        opened("", end, place=url, **LONG_LEASE) as one,
        opened("", end, place=url, works=False, **LONG_LEASE) as other,
    ):
        tasks = [await one.submit(task_of()) for _ in range(40)]
        for task in tasks:
            await ended(one, task.id)
        await asyncio.gather(one.tidy(), other.tidy())
        await one.tidy()
        assert len(await one.of(OWNER, 0, 100)) < 5


async def test_an_error_does_not_end_the_watch(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Answers reach their runs after an unexpected error in a report of changes, which is logged."""
    failed, took = asyncio.Event(), []

    async def ask(run: ITaskRun) -> None:
        took.append(await run.ask("amount", TaskQuestion("elicitation/create", {}, "digest")))
        await run.end(DONE)

    def fail(change: object) -> None:
        failed.set()
        raise RuntimeError("a listener fails")

    async with opened("", ask, place=url, **LONG_LEASE) as engine:
        monkeypatch.setattr(engine, "task_changed", fail)
        task = await engine.submit(task_of())
        await failed.wait()
        await engine.answer(task.id, OWNER, {"amount": b"3"})
        assert (await ended(engine, task.id)).status == "completed"
    assert took == [b"3"]
    assert "changed tasks cannot be looked at" in caplog.text
