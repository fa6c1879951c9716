"""SQLite files that the processes of one machine share."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from axolotl_core.errors import ConfigurationError
from axolotl_core.sessions import SessionStoreError

ResultT = TypeVar("ResultT")

_OPEN_SECONDS: Final = 2.0
_FIRST_PAUSE_SECONDS: Final = 0.001
_LONGEST_PAUSE_SECONDS: Final = 0.02
_PRIMARY_CODE: Final = 0xFF
"""The part of an error code of SQLite that says what is wrong; the rest says where."""


class LocalDatabase:
    """A database whose short transactions never wait for the disk: the data need not survive a crash of the machine.

    They run in the event loop, because handing them to a thread would take as long as they do. Only the lock of another
    process can take longer: for that, they wait without blocking the loop.
    """

    def __init__(self, path: Path, schema: str, timeout_seconds: float) -> None:
        _make_private(path)
        self._name = path.name
        self._timeout_seconds = timeout_seconds
        self._connection = sqlite3.connect(path, timeout=_OPEN_SECONDS, isolation_level=None)
        for pragma in ("journal_mode = wal", "synchronous = off"):
            self._connection.execute(f"pragma {pragma}").close()
        self._connection.executescript(schema).close()
        self._connection.execute("pragma busy_timeout = 0").close()

    async def run(self, operation: Callable[[], ResultT], begin: str = "begin immediate") -> ResultT:
        """Run an operation in a transaction, while no other process writes; it may run again after a failure.

        With `begin`, others may write, and it sees the file at one moment. Raises SessionStoreError if the file cannot
        be used in time.
        """
        until, pause = None, _FIRST_PAUSE_SECONDS
        while True:
            try:
                with self.transaction(begin):
                    return operation()
            except sqlite3.Error as error:
                until = until or time.monotonic() + self._timeout_seconds
                is_busy = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() >= until:
                    raise SessionStoreError(f"{self._name} cannot be used: {error}") from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def all(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        with closing(self._connection.execute(statement, values)) as cursor:
            return cursor.fetchall()

    def execute(self, statement: str, *values: Any) -> int:
        """Execute a statement and return the number of changed rows."""
        with closing(self._connection.execute(statement, values)) as cursor:
            return cursor.rowcount

    @contextmanager
    def transaction(self, begin: str = "begin immediate") -> Iterator[None]:
        """Run a block in a transaction, without waiting for other processes."""
        self._connection.execute(begin).close()
        try:
            yield
            self._connection.execute("commit").close()
        except BaseException:
            if self._connection.in_transaction:  # some errors have ended it already
                self._connection.execute("rollback").close()
            raise

    @property
    def used_bytes(self) -> int:
        """The size of the file without the space that is free to be used again."""
        (pages,), (free,), (size,) = (
            self.all(f"pragma {name}")[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _make_private(path: Path) -> None:
    """Create a file that only its owner can read, or make it so; the files beside it get the same mode from SQLite."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigurationError(f"Setting sessions.directory: {path} cannot be used: {error.strerror}") from error
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
