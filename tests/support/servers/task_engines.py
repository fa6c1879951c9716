"""Engines of tasks, opened for tests, with a runner that is a function."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.task_engine import ITaskEngine, ITaskRun, NewTask, TaskChange, TaskRecord
from axolotl_server.extensions.tasks.engines.assembly import make_database, make_engine
from axolotl_server.extensions.tasks.engines.stored_engine import StoredTaskEngine
from axolotl_server.settings.server import ServerSettings
from tests.support.servers.serving import until
from tests.support.stores.postgres_server import postgres_database, shared_postgres

STORES = ("sqlite", "postgres")
ENGINES = ("memory", *STORES)
KEY = "a key for the tests, long enough"
Run: TypeAlias = Callable[[ITaskRun], Awaitable[None]]


class OpenEngine:
    """An engine that records what it reports, and runs tasks with a function."""

    def __init__(
        self, engine: ITaskEngine, run: Callable[[ITaskRun], Awaitable[None]], tools: Mapping[str, int]
    ) -> None:
        self.engine = engine
        self.tools = tools
        self.changes: list[TaskChange] = []
        self.runs = 0
        self._run = run
        self._working: asyncio.Task[None] | None = None
        self.restartable = True

    def begin_work(self) -> None:
        """Run tasks from now on."""
        self._working = asyncio.ensure_future(self.engine.work(self))

    async def end_work(self) -> None:
        """Run no more tasks."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait((self._working,))

    async def run(self, run: ITaskRun) -> None:
        self.runs += 1
        await self._run(run)

    def may_restart(self, tool: str) -> bool:
        return self.restartable

    async def began(self, runs: int) -> None:
        """Wait until a number of runs have begun."""
        await until(lambda: self.runs >= runs)

    def follows(self, task_id: str) -> bool:
        return True

    def hears(self, task_id: str) -> bool:
        return True

    def task_changed(self, change: TaskChange) -> None:
        self.changes.append(change)

    def seen(self, task_id: str) -> list[str]:
        """Return the statuses that were reported."""
        return [change.record.status for change in self.changes if change.is_status and change.record.id == task_id]

    @property
    def messages(self) -> list[bytes]:
        """The messages that were reported."""
        return [message for change in self.changes for message in change.messages]

    async def tidy(self) -> None:
        """Delete what has expired, if the engine does that only now and then."""
        if isinstance(self.engine, StoredTaskEngine):
            await self.engine.tidy()

    async def submit(self, task: NewTask) -> TaskRecord:
        return await self.engine.submit(task)

    async def find(self, task_id: str, owner: bytes | None) -> TaskRecord | None:
        return await self.engine.find(task_id, owner)

    async def of(self, owner: bytes | None, after: int, count: int) -> Sequence[TaskRecord]:
        return await self.engine.of(owner, after, count)

    async def latest(self, count: int) -> Sequence[TaskRecord]:
        return await self.engine.latest(count)

    async def answer(self, task_id: str, owner: bytes, answers: Mapping[str, bytes]) -> frozenset[str]:
        return await self.engine.answer(task_id, owner, answers)

    async def cancel(self, task_id: str, owner: bytes | None, reason: CancelReason) -> TaskRecord | None:
        return await self.engine.cancel(task_id, owner, reason)


@asynccontextmanager
async def opened(
    kind: str,
    run: Run,
    *,
    works: bool = True,
    place: str | None = None,
    tools: Mapping[str, int] | None = None,
    key: str = KEY,
    per_caller: int | None = None,
    **settings: Any,
) -> AsyncIterator[OpenEngine]:
    """Open an engine of a kind, and close it afterwards; `place` is the URL of a store that others use too."""
    with ExitStack() as stack:
        url = place or stack.enter_context(store_of(kind))
        given = {"lease_seconds": 1.0, **settings, "url": url}
        share = {} if per_caller is None else {"share_per_caller": per_caller / given.get("maximum", 1000)}
        loaded = ServerSettings.model_validate({"tasks": given, "limits": share, "protocol": {"state_keys": [key]}})
        engine = OpenEngine(make_engine(loaded), run, tools or {"render": 0})
        await engine.engine.open(engine)
        if works:
            engine.begin_work()
        try:
            yield engine
        finally:
            await engine.end_work()
            await engine.engine.close()


@contextmanager
def store_of(kind: str) -> Iterator[str | None]:
    """Give the URL of an empty store."""
    if kind == "memory":
        yield None
        return
    if kind == "postgres":
        with postgres_database() as url:
            prepare_store(url)
            yield url
        return
    with TemporaryDirectory() as directory:
        yield f"sqlite:///{directory}/tasks.db"


def prepare_store(url: str) -> None:
    """Create the tables of a store, in a thread with a loop of its own."""
    loaded = ServerSettings.model_validate({"tasks": {"url": url}, "protocol": {"state_keys": [KEY]}})
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(make_database(loaded).prepare())).result()


def change_store(url: str, sqlite: str, postgres: str) -> None:
    """Execute a statement behind the back of an engine."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.execute(sqlite)
            database.commit()
    else:
        shared_postgres().psql(postgres, urlsplit(url).path.removeprefix("/"))
