"""Stores of other versions: older ones are brought up to date, newer ones are refused."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_core.task_engine import ITaskRun, NewTask
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.servers.task_engines import STORES, change_store, opened, prepare_store, store_of

OWNER = b"owner"


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a store of this version."""
    with store_of(request.param) as place:
        assert place is not None
        prepare_store(place)
        yield place


async def never(run: ITaskRun) -> None:
    raise AssertionError


def task_of(key: bytes) -> NewTask:
    return NewTask(OWNER, "render", b"call", 60, key=key)


JOBS = (
    "create table jobs (id integer primary key autoincrement, entrypoint text not null, payload blob not null,"
    " created real not null, heartbeat real not null, execute_after real not null,"
    " status text not null default 'queued', manager text, attempts integer not null default 0)"
)


def make_older(url: str) -> None:
    """Make a store what it was when the queue of SQLite was a table of its own."""
    if url.startswith("sqlite"):
        for statement in (
            "drop index tasks_queue",
            "alter table tasks drop column worker",
            "alter table tasks drop column due_at",
            JOBS,
            "insert into jobs (entrypoint, payload, created, heartbeat, execute_after)"
            " select tool, cast(id as blob), 0, 0, 0 from tasks",
        ):
            change_store(url, statement, "")
    for sqlite, postgres in (
        (
            "alter table tasks add column version integer not null default 0",
            "alter table axolotl.tasks add column version integer not null default 0",
        ),
        ("pragma user_version = 2", "update axolotl.store_version set version = 2"),
    ):
        change_store(url, sqlite, postgres)


def make_old(url: str) -> None:
    """Make a store what it was before versions: keys were not unique, and two tasks have the same one."""
    make_older(url)
    for sqlite, postgres in (
        ("drop index tasks_by_key", "drop index axolotl.tasks_by_key"),
        ("create index tasks_by_key on tasks (owner, key)", "create index tasks_by_key on axolotl.tasks (owner, key)"),
        (
            "update tasks set key = (select min(key) from tasks)",
            "update axolotl.tasks set key = (select decode(min(encode(key, 'hex')), 'hex') from axolotl.tasks)",
        ),
        ("pragma user_version = 0", "drop table axolotl.store_version"),
    ):
        change_store(url, sqlite, postgres)


async def test_an_old_store_is_migrated(url: str) -> None:
    """Keys become unique: of several open tasks with one key, the oldest keeps it, and all of them stay."""
    async with opened("", never, place=url, works=False) as engine:
        tasks = [await engine.submit(task_of(key)) for key in (b"one", b"two")]
    await asyncio.to_thread(make_old, url)
    for _ in range(2):
        await asyncio.to_thread(prepare_store, url)
    async with opened("", never, place=url, works=False) as engine:
        again = [await engine.submit(task_of(key)) for key in (b"one", b"two")]
        assert [one.id for one in again].count(tasks[0].id) == 1
        assert tasks[1].id not in {one.id for one in again}
        found = await engine.of(OWNER, 0, 10)
        assert len(found) == 3
        assert {task.id for task in tasks} <= {record.id for record in found}


async def test_the_queue_of_an_old_store_is_drained(tmp_path: Path) -> None:
    """Tasks keep their order and their time: one that is queued runs, one that a worker still has does not."""
    url, ran = f"sqlite:///{tmp_path}/tasks.db", asyncio.Queue[str]()

    async def run(run: ITaskRun) -> None:
        ran.put_nowait(run.record.id)

    async with opened("", never, place=url, works=False) as engine:
        tasks = [(await engine.submit(task_of(b"%d" % number))).id for number in range(5)]
    make_older(url)
    for change in (
        f"status = 'picked', manager = 'lives', heartbeat = {time.time()} where id = 1",
        "status = 'picked', manager = 'lost', heartbeat = 5 where id = 2",
        f"execute_after = {time.time() + 60} where id = 3",
        "execute_after = 'soon' where id = 4",
    ):
        change_store(url, f"update jobs set {change}", "")
    change_store(url, "update tasks set state = 'running', run = 1 where number <= 2", "")
    change_store(url, "delete from jobs where id = 5", "")
    async with opened("", run, place=url) as engine:
        found = [await asyncio.wait_for(ran.get(), PATIENCE_SECONDS) for _ in range(3)]
        assert (found, engine.runs) == ([tasks[1], tasks[3], tasks[4]], 3)
        assert engine.engine.counts.lost == 1


async def test_a_newer_store_is_refused(url: str) -> None:
    """A server does not touch a store whose tables it does not know."""
    await asyncio.to_thread(
        change_store, url, "pragma user_version = 99", "update axolotl.store_version set version = 99"
    )
    with pytest.raises(ConfigurationError, match="the store has version 99, and this server knows only"):
        async with opened("", never, place=url, works=False):
            pass
    with pytest.raises(ConfigurationError, match="update Axolotl"):
        await asyncio.to_thread(prepare_store, url)


async def test_a_server_does_not_change_tables_in_postgres() -> None:
    """A server with an older database says what to do: it may not have the right to change tables."""
    with store_of("postgres") as url:
        assert url is not None
        await asyncio.to_thread(make_old, url)
        with pytest.raises(ConfigurationError, match="run axolotl tasks prepare"):
            async with opened("", never, place=url, works=False):
                pass


async def test_several_processes_migrate_at_once(url: str) -> None:
    """Processes that find an old store at the same moment do not disturb each other."""
    await asyncio.to_thread(make_old, url)
    await asyncio.gather(*(asyncio.to_thread(prepare_store, url) for _ in range(5)))
    async with opened("", never, place=url, works=False) as engine:
        first = await engine.submit(task_of(b"one"))
        assert (await engine.submit(task_of(b"one"))).id == first.id
