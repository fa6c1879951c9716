"""A database that the processes of one machine share, in a directory of their own."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

__all__ = ["LocalDatabase"]

_BUSY_SECONDS: Final = 2.0


class LocalDatabase:
    """Short transactions that never wait for the disk: what is kept here need not outlive the machine."""

    def __init__(self, path: Path, schema: str) -> None:
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        for pragma in ("journal_mode = wal", "synchronous = off"):
            self._connection.execute(f"pragma {pragma}").close()
        self._connection.executescript(schema).close()

    def all(self, statement: str, *values: Any) -> list[Any]:
        """Give what a statement gives."""
        with closing(self._connection.execute(statement, values)) as cursor:
            return cursor.fetchall()

    def changed(self, statement: str, *values: Any) -> int:
        """Make a change and give how many rows it concerned."""
        with closing(self._connection.execute(statement, values)) as cursor:
            return cursor.rowcount

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other process change anything while the block runs; all or nothing of it is kept."""
        self._connection.execute("begin immediate").close()
        try:
            yield
        except BaseException:
            self._connection.execute("rollback").close()
            raise
        self._connection.execute("commit").close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
