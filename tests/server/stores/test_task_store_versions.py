"""Stores of other versions: older ones are brought up to date, newer ones are refused."""

import asyncio
from collections.abc import Iterator

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_core.task_engine import ITaskRun, NewTask
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


def make_old(url: str) -> None:
    """Make a store what it was before versions: keys were not unique, and two tasks have the same one."""
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
