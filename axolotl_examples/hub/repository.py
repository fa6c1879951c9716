"""Conversation storage: the port, and its SQLite implementation."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from axolotl_examples.hub.turn import Turn

P = ParamSpec("P")
R = TypeVar("R")

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS turn (
        number INTEGER PRIMARY KEY, session TEXT NOT NULL, speaker TEXT NOT NULL, text TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS turn_by_session ON turn (session, number);
"""


class IConversations(Protocol):
    """Stores the turns of each session."""

    async def turns(self, session: str) -> list[Turn]:
        """Return the turns of a session, oldest first. An unknown session has no turns."""
        ...

    async def append(self, session: str, turns: Sequence[Turn]) -> None:
        """Add turns to a session: either all of them or, on failure, none."""
        ...

    async def forget(self, session: str) -> int:
        """Delete a session and return the number of its turns."""
        ...


class SqliteConversations(IConversations):
    """Stores conversations in SQLite. A dedicated thread makes the calls, because they block."""

    def __init__(self, connection: sqlite3.Connection, thread: Executor) -> None:
        self._connection = connection
        self._thread = thread

    async def turns(self, session: str) -> list[Turn]:
        return await self._transact(_select, session)

    async def append(self, session: str, turns: Sequence[Turn]) -> None:
        await self._transact(_insert, session, turns)

    async def forget(self, session: str) -> int:
        return await self._transact(_delete, session)

    async def _transact(
        self, work: Callable[Concatenate[sqlite3.Connection, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `work` in the thread, in a transaction that is rolled back if it fails."""

        def transaction() -> R:
            with self._connection as connection:
                return work(connection, *args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._thread, transaction)


async def open_conversations(path: str) -> AsyncIterator[SqliteConversations]:
    """Open the database at startup and close it at shutdown."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="conversations") as thread:
        connection = await loop.run_in_executor(thread, sqlite3.connect, path)
        try:
            await loop.run_in_executor(thread, connection.executescript, _SCHEMA)
            yield SqliteConversations(connection, thread)
        finally:
            await loop.run_in_executor(thread, connection.close)


def _select(connection: sqlite3.Connection, session: str) -> list[Turn]:
    rows = connection.execute("SELECT speaker, text FROM turn WHERE session = ? ORDER BY number", (session,))
    return [Turn(speaker=speaker, text=text) for speaker, text in rows]


def _insert(connection: sqlite3.Connection, session: str, turns: Sequence[Turn]) -> None:
    rows = [(session, turn.speaker, turn.text) for turn in turns]
    connection.executemany("INSERT INTO turn (session, speaker, text) VALUES (?, ?, ?)", rows)


def _delete(connection: sqlite3.Connection, session: str) -> int:
    return connection.execute("DELETE FROM turn WHERE session = ?", (session,)).rowcount
