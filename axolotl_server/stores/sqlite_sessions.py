"""Session store in an SQLite file, with which every process of one machine can serve every client."""

import asyncio
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from axolotl_core.sessions import (
    ISessionStore,
    KnownSession,
    SessionChange,
    SessionRecord,
    SessionStoreError,
    hide_session_id,
)
from axolotl_server.stores.sqlite_file import LocalDatabase, ResultT

_MAX_MESSAGE_BYTES: Final = 2**20
_PAUSES_SECONDS: Final = (0.01, 0.03, 0.1, 0.3)
"""How long a busy process may take to receive a message."""
_SCHEMA: Final = """
create table if not exists sessions (
    name text primary key, version integer not null, record blob not null, used real not null
);
create table if not exists shares (name text primary key, share text not null);
create index if not exists names_by_share on shares (share);
create table if not exists holders (name text not null, process text not null, primary key (name, process));
"""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(SessionRecord).decode


class SqliteSessionStore(ISessionStore):
    """Keeps sessions in a database, and sends messages to other processes through sockets next to it."""

    def __init__(
        self,
        directory: Path,
        *,
        maximum: int,
        idle_seconds: float,
        maximum_per_principal: int | None = None,
        timeout_seconds: float = 1.0,
    ) -> None:
        self._directory = directory
        self._idle: list[str] = []
        self._expired: Callable[[Sequence[str]], object] | None = None
        self._maximum = maximum
        self._maximum_per_principal = maximum_per_principal
        self._idle_seconds = idle_seconds
        self._process = secrets.token_hex(8)
        self._database = LocalDatabase(directory / "sessions.sqlite", _SCHEMA, timeout_seconds)
        self._socket: socket.socket | None = None

    def names(self) -> set[str]:
        """Return the digests of all sessions."""
        return {name for (name,) in self._database.all("select name from sessions")}

    def open(
        self,
        receive: Callable[[bytes], object],
        reconnected: Callable[[], object],
        expired: Callable[[Sequence[str]], object],
    ) -> None:
        """Begin to receive; messages are never lost, so that `reconnected` is not called."""
        self._expired = expired
        own = self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        own.bind(str(self._directory / self._process))
        own.setblocking(False)

        def read() -> None:
            try:
                receive(own.recv(_MAX_MESSAGE_BYTES))
            except BlockingIOError:
                return

        asyncio.get_running_loop().add_reader(own, read)

    async def begin(self, session: str, record: SessionRecord) -> bool:
        return await self._write(lambda: self._begin(hide_session_id(session), record))

    def _begin(self, name: str, record: SessionRecord) -> bool:
        self._drop_idle()
        [(count,)] = self._database.all("select count(*) from sessions")
        if count >= self._maximum or self._is_used_up(record.share):
            return False
        self._database.execute("insert into sessions values (?, 1, ?, ?)", name, _encode(record), time.monotonic())
        self._database.execute("insert into holders values (?, ?)", name, self._process)
        if record.share is not None:
            self._database.execute("insert into shares values (?, ?)", name, record.share)
        return True

    async def find(self, session: str, known: int) -> KnownSession | None:
        return await self._write(lambda: self._find(hide_session_id(session), known))

    def _find(self, name: str, known: int) -> KnownSession | None:
        if not self._use(name):
            return None
        if known == 0:
            self._database.execute("insert or ignore into holders values (?, ?)", name, self._process)
        [(version, record)] = self._database.all("select version, record from sessions where name = ?", name)
        return KnownSession(version, None if version == known else _decode(record))

    async def change(self, session: str, change: SessionChange) -> int | None:
        return await self._write(lambda: self._change(hide_session_id(session), change))

    def _change(self, name: str, change: SessionChange) -> int | None:
        if not self._use(name):
            return None
        [(version, record)] = self._database.all("select version, record from sessions where name = ?", name)
        changed = _encode(_decode(record).changed(change))
        statement = "update sessions set version = ?, record = ? where name = ?"
        self._database.execute(statement, version + 1, changed, name)
        return int(version) + 1

    async def hold(self, sessions: Sequence[str]) -> frozenset[str]:
        return await self._write(lambda: self._hold(sessions))

    def _hold(self, sessions: Sequence[str]) -> frozenset[str]:
        self._drop_idle()
        return frozenset(session for session in sessions if self._use(hide_session_id(session)))

    async def end(self, session: str) -> None:
        await self._write(lambda: self._remove(hide_session_id(session)))

    async def send(self, session: str, message: bytes, *, wait: bool = False) -> bool:
        """Send a message to each holder; processes that have died are removed."""
        query = "select process from holders where name = ?"
        rows = await self._database.run(lambda: self._database.all(query, hide_session_id(session)), "begin")
        received = [await self._send(process, message) for (process,) in rows if process != self._process]
        return any(received)

    async def broadcast(self, message: bytes) -> None:
        for path in tuple(self._directory.iterdir()):
            if path.is_socket() and path.name != self._process:
                await self._send(path.name, message)

    async def close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
        with suppress(SessionStoreError):  # otherwise, those who send to this process do it
            await self._remove_process(self._process)
        self._database.close()

    async def _send(self, process: str, message: bytes) -> bool:
        assert self._socket is not None
        path = self._directory / process
        for pause in (*_PAUSES_SECONDS, None):
            try:
                self._socket.sendto(message, str(path))
                return True
            except (FileNotFoundError, ConnectionRefusedError):
                await self._remove_process(process)
                return False
            except BlockingIOError:
                if pause is None:
                    raise SessionStoreError("another process does not receive messages") from None
                await asyncio.sleep(pause)
            except OSError as error:
                raise SessionStoreError(f"a message cannot be sent: {error.strerror}") from None
        return False

    async def _remove_process(self, process: str) -> None:
        (self._directory / process).unlink(missing_ok=True)
        await self._write(lambda: self._database.execute("delete from holders where process = ?", process))

    async def _write(self, operation: Callable[[], ResultT]) -> ResultT:
        """Run an operation in a transaction, and report the sessions that it found to be idle for too long."""

        def run() -> tuple[ResultT, list[str]]:
            self._idle = []
            return operation(), self._idle

        result, idle = await self._database.run(run)
        if idle and self._expired is not None:
            self._expired(idle)
        return result

    def _use(self, name: str) -> bool:
        self._drop_idle()
        return self._database.execute("update sessions set used = ? where name = ?", time.monotonic(), name) == 1

    def _is_used_up(self, share: str | None) -> bool:
        if share is None or self._maximum_per_principal is None:
            return False
        [(count,)] = self._database.all("select count(*) from shares where share = ?", share)
        return bool(count >= self._maximum_per_principal)

    def _drop_idle(self) -> None:
        now = time.monotonic()  # all processes of a machine share this clock, and nobody sets it
        self._database.execute("update sessions set used = ? where used > ?", now, now)  # from before a restart
        for (name,) in self._database.all("select name from sessions where used < ?", now - self._idle_seconds):
            self._remove(name)
            self._idle.append(name)

    def _remove(self, name: str) -> None:
        for table in ("sessions", "shares", "holders"):
            self._database.execute(f"delete from {table} where name = ?", name)
