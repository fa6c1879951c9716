"""The writer of an SQLite database of tasks: a thread that commits all pending operations together."""

import asyncio
import re
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

from axolotl_core.errors import Overloaded
from axolotl_core.task_engine import TasksUnavailable
from axolotl_server.extensions.tasks.engines.store_version import (
    SQLITE_STEPS,
    STORE_VERSION,
    check_not_newer,
    steps_from,
)
from axolotl_server.extensions.tasks.engines.task_statements import Changed, Enqueue, Operation

_BUSY_SECONDS: Final = 5.0
_MAX_TOGETHER: Final = 500
_PARAMETER: Final = re.compile(r"\$(\d+)")

ResultT = TypeVar("ResultT")


class Effects(NamedTuple):
    """What other processes must learn about a transaction."""

    changed: set[str]
    queued: list[bool]


class _Item(NamedTuple):
    operation: Operation[Any]
    writes: bool
    atomic: bool
    done: "asyncio.Future[Any]"


@lru_cache(500)
def _translated(sql: str) -> str:
    return _PARAMETER.sub(r"?\1", sql)


def run_operation(operation: Operation[ResultT], connection: sqlite3.Connection, effects: Effects) -> ResultT:
    """Execute an operation step by step."""
    rows: Any = None
    while True:
        try:
            step = operation.send(rows)
        except StopIteration as ended:
            result: ResultT = ended.value
            return result
        rows = ()
        if isinstance(step, Changed):
            effects.changed.add(step.task_id)
        elif isinstance(step, Enqueue):
            effects.queued.append(True)
        else:
            cursor = connection.execute(_translated(step.sql), step.arguments)
            rows = cursor.fetchall()
            cursor.close()
            if step.changes and rows:
                assert step.task_id is not None
                effects.changed.add(step.task_id)
            if rows and (step.enqueue is not None or step.changes):  # the end of a task may leave room for another one
                effects.queued.append(True)


class SqliteWriter:
    """Executes work in the order in which it arrives. Whoever waits for it waits for one write to the disk.

    A database in memory needs no thread: nothing there takes longer than handing it over would.
    """

    def __init__(self, path: Path | None, schema: str, after_commit: Callable[[Effects], object]) -> None:
        """Write to a file, or to memory, which needs no `open`; `after_commit` runs in the event loop."""
        self._path = path
        self._schema = schema
        self._after_commit = after_commit
        self._items: SimpleQueue[_Item | None] = SimpleQueue()
        self._opened: Future[None] = Future()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None

    async def open(self) -> None:
        """Open the file and create its tables, or raise sqlite3.Error or ConfigurationError."""
        if self._path is None:
            return
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="axolotl tasks", daemon=True)
        self._thread.start()
        await asyncio.wrap_future(self._opened)

    async def execute(self, operation: Operation[ResultT], *, writes: bool, atomic: bool) -> ResultT:
        """Execute an operation with others, or raise TasksUnavailable; what is `atomic` is undone if it fails."""
        if self._closed:
            raise TasksUnavailable("the database of tasks is closed")
        done: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        item = _Item(operation, writes, atomic, done)
        if self._path is not None:
            self._items.put(item)
        else:
            self._commit_together(self._in_memory, item)
        try:
            return await done
        finally:
            del done, item  # an error that they hold would hold them, and with them the arguments of a call

    def read_now(self, operation: Operation[ResultT]) -> ResultT:
        """Execute an operation on memory that changes nothing."""
        return run_operation(operation, self._in_memory, Effects(set(), []))

    async def close(self) -> None:
        """Finish what is pending, and close the file."""
        self._closed = True
        if self._thread is not None:
            self._items.put(None)
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        if "_in_memory" in vars(self):
            self._in_memory.close()

    @cached_property
    def _in_memory(self) -> sqlite3.Connection:
        assert self._path is None
        return self._connected()

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            for pragma in ("journal_mode = wal", "synchronous = full", "wal_autocheckpoint = 4000"):
                connection.execute(f"pragma {pragma}").close()
            _bring_up_to_date(connection, self._schema)
        except BaseException:
            connection.close()  # which undoes what is not committed
            raise
        return connection

    def _run(self) -> None:
        try:
            connection = self._connected()
        except BaseException as error:
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        try:
            while (item := self._items.get()) is not None:
                if not self._commit_together(connection, item):
                    return
        finally:
            connection.close()

    def _commit_together(self, connection: sqlite3.Connection, first: _Item) -> bool:
        """Execute everything that waits in one transaction; return False at the end."""
        items, more = [first], True
        while len(items) < _MAX_TOGETHER and not self._items.empty():
            item = self._items.get()
            if item is None:
                more = False
                break
            items.append(item)
        effects = Effects(set(), [])
        results: list[tuple[_Item, Any, BaseException | None]] = []
        try:
            connection.execute("begin immediate" if any(item.writes for item in items) else "begin").close()
            results.extend((item, *_attempt(item, connection, effects)) for item in items)
            connection.execute("commit").close()
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("rollback").close()
            problem = TasksUnavailable(f"the database of tasks cannot be used: {error}")
            results = [(item, None, problem) for item in items]
            effects = Effects(set(), [])
        self._report(results, effects)
        return more

    def _report(self, results: list[tuple[_Item, Any, BaseException | None]], effects: Effects) -> None:
        def deliver() -> None:
            for item, result, error in results:
                if item.done.done():
                    continue  # whoever waited for it was cancelled
                if error is None:
                    item.done.set_result(result)
                else:
                    item.done.set_exception(error)
            if effects.changed or effects.queued:
                self._after_commit(effects)

        if self._path is None:
            deliver()
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(deliver)


def _attempt(item: _Item, connection: sqlite3.Connection, effects: Effects) -> tuple[Any, BaseException | None]:
    """Execute one piece of work; if it fails, only its own changes are undone.

    What consists of one statement, or fails only with the database, needs no savepoint for that.
    """
    is_undone = item.writes and item.atomic
    own = Effects(set(), []) if is_undone else effects
    if is_undone:
        connection.execute("savepoint work").close()
    try:
        result = run_operation(item.operation, connection, own)
    except sqlite3.Error:
        raise
    except Exception as error:
        if is_undone:
            connection.execute("rollback to work").close()
            connection.execute("release work").close()
        if isinstance(error, Overloaded):
            error.with_traceback(None)  # which would hold the arguments of a call
        return None, error
    if is_undone:
        connection.execute("release work").close()
        effects.changed.update(own.changed)
        effects.queued.extend(own.queued)
    return result, None


def _bring_up_to_date(connection: sqlite3.Connection, schema: str) -> None:
    """Create the tables, or migrate those of an older version; several processes may try at the same time."""
    if _version(connection) == STORE_VERSION:
        return
    connection.execute("begin immediate").close()
    version = _version(connection)
    check_not_newer(version)
    if version < STORE_VERSION:
        for statement in (
            *schema.split(";"),
            *steps_from(version, SQLITE_STEPS),
            f"pragma user_version = {STORE_VERSION}",
        ):
            connection.execute(statement).close()
    connection.execute("commit").close()


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])
