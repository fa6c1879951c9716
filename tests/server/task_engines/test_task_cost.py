"""The cost of stored tasks, in statements and commits instead of time."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from axolotl_core.task_engine import ITaskRun, NewTask, Outcome
from tests.support.servers.task_engines import STORES, opened, store_of
from tests.support.stores.postgres_server import shared_postgres

TASKS = 300
OWNER = b"owner"


def call(number: int = 0) -> NewTask:
    return NewTask(OWNER, "render", b"call %d" % number, 60)


async def finish(run: ITaskRun) -> None:
    await run.end(Outcome("completed", None, run.call))


async def run_all(kind: str, place: str | None, count: int) -> None:
    """Submit tasks at the same time, run them, and read each of them at the same time."""
    async with opened(kind, finish, place=place, lease_seconds=30, maximum=100_000) as engine:
        engine.follows = lambda task_id: False  # type: ignore[method-assign]  # nobody waits for a change
        await engine.submit(call())  # the first one counts the tasks, the others know that there is room
        records = await asyncio.gather(*(engine.submit(call(number)) for number in range(count)))
        await engine.began(count)
        while True:
            found = await asyncio.gather(*(engine.find(record.id, OWNER) for record in records))
            if all(record is not None and record.outcome is not None for record in found):
                break
            await asyncio.sleep(0.05)  # sleeps: nobody follows the tasks
    assert [record.outcome.result for record in found if record is not None and record.outcome is not None] == [
        b"call %d" % number for number in range(count)
    ]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What SQLite is asked to do."""
    seen: list[str] = []
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(seen.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    return seen


def commits_of(url: str) -> int:
    """Count the transactions of a Postgres database; those of open connections may be missing."""
    name = urlsplit(url).path.removeprefix("/")
    return int(shared_postgres().psql(f"select xact_commit from pg_stat_database where datname = '{name}'"))


async def test_tasks_share_commits_on_sqlite(statements: list[str]) -> None:
    """Tasks that are submitted, begin, end and are read at the same time do not have commits of their own."""
    await run_all("sqlite", None, TASKS)
    assert statements.count("commit") < TASKS / 2


async def test_a_task_needs_few_statements_on_sqlite(statements: list[str]) -> None:
    """A task costs two statements to submit, three in the queue and two for its run; savepoints would double them."""
    await run_all("sqlite", None, TASKS)
    writing = [one for one in statements if one.startswith(("insert", "update", "delete", "savepoint", "release"))]
    assert len(writing) < 7 * TASKS


async def test_several_tasks_are_read_with_one_statement(statements: list[str]) -> None:
    """Tasks that are read together cost one query, and what is no ID, or the ID of another owner, none."""
    async with opened("sqlite", finish, works=False) as engine:
        records = [await engine.submit(call(number)) for number in range(100)]
        ids = [record.id for record in records]
        statements.clear()
        found = await engine.engine.read(["no ID", "\0", *ids, "A" * 32, ids[0]], OWNER)
        assert sorted(record.id for record in found) == sorted(ids)
        assert await engine.engine.read(ids, b"another") == []
        assert await engine.engine.read(["no ID", "x" * 65], OWNER) == []
    assert len([one for one in statements if one.startswith("select") and " in (" in one]) == 2


async def test_tasks_share_commits_on_postgres() -> None:
    """Tasks that are submitted, begin, end and are read at the same time do not have commits of their own."""
    with store_of("postgres") as url:
        assert url is not None
        before = commits_of(url)
        await run_all("postgres", url, TASKS)
        assert commits_of(url) - before < TASKS


def test_only_what_counts_is_durable_on_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database writes no journal for the log of the queue, and one for the queue, whatever the environment says."""
    monkeypatch.setenv("PGQUEUER_DURABILITY", "volatile")
    with store_of("postgres") as url:
        assert url is not None
        kinds_of = (
            "select concat(relname, ' ', relpersistence) from pg_class where relname ~ '^(tasks|queue|queue_log)$'"
        )
        found = shared_postgres().psql(kinds_of, urlsplit(url).path.removeprefix("/")).splitlines()
    kinds = dict(line.split(" ") for line in found)
    assert (kinds["tasks"], kinds["queue"], kinds["queue_log"]) == ("p", "p", "u")


@pytest.mark.parametrize("kind", STORES)
async def test_tasks_that_share_a_statement_fail_alone(kind: str) -> None:
    """Whoever stops waiting for a task does not stop the others."""
    async with opened(kind, finish) as engine:
        submitting = [asyncio.ensure_future(engine.submit(call(number))) for number in range(20)]
        await asyncio.sleep(0)
        submitting[0].cancel()
        records = await asyncio.gather(*submitting[1:])
        assert len({record.id for record in records}) == 19


@pytest.mark.parametrize("kind", STORES)
async def test_the_same_task_is_read_by_many(kind: str) -> None:
    """Those who read one task at the same time all get it, and strangers get nothing."""
    async with opened(kind, finish, works=False) as engine:
        record = await engine.submit(call())
        found = await asyncio.gather(*(engine.find(record.id, OWNER) for _ in range(10)), engine.find(record.id, b"x"))
        assert found == [record] * 10 + [None]
