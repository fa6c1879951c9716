"""Conversations, the port that stores them, and its SQLite implementation."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Concatenate, Final, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from axolotl_core import ConfigurationError, ToolError

P = ParamSpec("P")
R = TypeVar("R")

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS turn (
        number INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        session TEXT NOT NULL,
        speaker TEXT NOT NULL,
        text TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS turn_by_owner_and_session ON turn (owner, session, number);
"""


class Turn(BaseModel):
    """One message in a conversation."""

    model_config = ConfigDict(frozen=True)

    speaker: Literal["user", "assistant"] = Field(description="The author of the message.")
    text: str = Field(description="The text of the message.")


class Session(NamedTuple):
    """The session of one owner. Sessions of different owners are separate, even if their names are equal."""

    owner: tuple[str | None, str | None, str]
    """The `identity` of the principal."""
    name: str


class IConversations(Protocol):
    """Stores the turns of each session."""

    async def turns(self, session: Session) -> list[Turn]:
        """Return the turns of a session, oldest first. An unknown session has no turns."""
        ...

    async def append(self, session: Session, turns: Sequence[Turn]) -> None:
        """Add turns to a session: either all of them or, on failure, none. The oldest turns may be dropped.

        Raises `ToolError` if the owner has too many sessions.
        """
        ...

    async def forget(self, session: Session) -> int:
        """Delete a session and return the number of its turns."""
        ...


class SqliteConversations(IConversations):
    """Stores conversations in SQLite. A dedicated thread makes the calls, because they block."""

    def __init__(self, connection: sqlite3.Connection, thread: Executor, *, max_turns: int, max_sessions: int) -> None:
        self._connection = connection
        self._thread = thread
        self._max_turns = max_turns
        self._max_sessions = max_sessions

    async def turns(self, session: Session) -> list[Turn]:
        return await self._transact(_select, session)

    async def append(self, session: Session, turns: Sequence[Turn]) -> None:
        await self._transact(_insert, session, turns, self._max_turns, self._max_sessions)

    async def forget(self, session: Session) -> int:
        return await self._transact(_delete, session)

    async def _transact(
        self, work: Callable[Concatenate[sqlite3.Connection, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `work` in the thread, in a transaction that is rolled back if it fails."""

        def transaction() -> R:
            with self._connection as connection:
                return work(connection, *args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._thread, transaction)


async def open_conversations(path: str, max_turns: int, max_sessions: int) -> AsyncIterator[SqliteConversations]:
    """Open the database at startup and close it at shutdown.

    Raises `ConfigurationError` if the file cannot be used.
    """
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="conversations") as thread:
        connection = await loop.run_in_executor(thread, _connect, path)
        try:
            yield SqliteConversations(connection, thread, max_turns=max_turns, max_sessions=max_sessions)
        finally:
            await loop.run_in_executor(thread, connection.close)


def _connect(path: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path)
        try:
            connection.executescript(_SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise ConfigurationError(
            f"The database {path!r} cannot be used: {error}; "
            "set HUB_DATABASE to a file that the hub may create or that it has created"
        ) from error
    return connection


def _select(connection: sqlite3.Connection, session: Session) -> list[Turn]:
    rows = connection.execute(
        "SELECT speaker, text FROM turn WHERE owner = ? AND session = ? ORDER BY number", _key(session)
    )
    return [Turn(speaker=speaker, text=text) for speaker, text in rows]


def _insert(
    connection: sqlite3.Connection, session: Session, turns: Sequence[Turn], max_turns: int, max_sessions: int
) -> None:
    owner, name = _key(session)
    others = connection.execute(
        "SELECT count(DISTINCT session) FROM turn WHERE owner = ? AND session <> ?", (owner, name)
    ).fetchone()[0]
    if others >= max_sessions:
        raise ToolError(f"There are {others} sessions, which is the maximum: forget one first")
    rows = [(*_key(session), turn.speaker, turn.text) for turn in turns]
    connection.executemany("INSERT INTO turn (owner, session, speaker, text) VALUES (?, ?, ?, ?)", rows)
    connection.execute(
        "DELETE FROM turn WHERE owner = ? AND session = ? AND number <= "
        "(SELECT number FROM turn WHERE owner = ? AND session = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
        (owner, name, owner, name, max_turns),
    )


def _delete(connection: sqlite3.Connection, session: Session) -> int:
    return connection.execute("DELETE FROM turn WHERE owner = ? AND session = ?", _key(session)).rowcount


def _key(session: Session) -> tuple[str, str]:
    return json.dumps(session.owner), session.name
