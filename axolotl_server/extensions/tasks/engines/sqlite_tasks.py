"""Tasks in an SQLite file, for all processes of one machine."""

import asyncio
import logging
import os
import secrets
import socket
import sqlite3
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from axolotl_core.errors import ConfigurationError
from axolotl_server.extensions.tasks.engines.sqlite_worker import SqliteStatements, SqliteWorker
from axolotl_server.extensions.tasks.engines.sqlite_writer import Effects, SqliteWriter
from axolotl_server.extensions.tasks.engines.stored_run import IExecution, ITaskDatabase, ITaskWorker
from axolotl_server.extensions.tasks.engines.task_sealing import TaskSealer
from axolotl_server.extensions.tasks.engines.task_statements import Operation
from axolotl_server.settings.server import ServerSettings

_SCHEMA: Final = """
create table if not exists tasks (
    number integer primary key autoincrement, id text not null unique, owner blob not null, share blob, key blob,
    tool text not null, status text not null, state text not null, created_at text not null, updated_at text not null,
    ttl_seconds real not null, expires_at real not null, run integer not null, losses integer not null,
    version integer not null, message blob, call blob, outcome blob
);
create index if not exists tasks_by_owner on tasks (owner, number);
create index if not exists tasks_by_expiry on tasks (expires_at);
create table if not exists kept (
    task text not null, kind text not null, key text not null, value blob not null, primary key (task, kind, key)
) without rowid;
create table if not exists messages (number integer primary key autoincrement, task text not null, value blob not null);
create index if not exists messages_by_task on messages (task);
"""
_NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "afs", "fuse.sshfs", "fuse.glusterfs"}
)
_MAX_DATAGRAM: Final = 60_000
_POLL_SECONDS: Final = 1.0
_POLL_IN_MEMORY_SECONDS: Final = 60.0
_POLL_WITHOUT_SOCKETS_SECONDS: Final = 0.05

ResultT = TypeVar("ResultT")

_log: Final = logging.getLogger("axolotl")


class SqliteTasks(ITaskDatabase):
    """A file that the processes of a machine share; they wake each other with datagrams."""

    statements: SqliteStatements

    def __init__(self, path: Path | None, settings: ServerSettings, sealer: TaskSealer) -> None:
        """Use a file, or the memory of this process, which has all tasks for itself."""
        self.statements = SqliteStatements(settings, sealer)
        self.poll_seconds = _POLL_SECONDS
        if path is None:
            self.poll_seconds, self.send_seconds = _POLL_IN_MEMORY_SECONDS, 0.0
        self._settings = settings.tasks
        self._path = path
        self._own = Path()
        """The socket of this process, in a directory with those of the others."""
        self._socket: socket.socket | None = None
        self._writer = SqliteWriter(path, _SCHEMA, self._after_commit)
        self._changed: Callable[[Iterable[str]], object] = _ignore
        self._worker: SqliteWorker | None = None

    async def open(self, changed: Callable[[Iterable[str]], object]) -> None:
        self._changed = changed
        try:
            if self._path is not None:
                _make_private(self._path)
                refuse_network_file_system(self._path)
            await self._writer.open()
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(f"Setting tasks.url: {self._path} cannot be used: {error}") from error
        if self._path is not None:
            self._listen(self._path.with_name(f"{self._path.name}-wake"))

    async def prepare(self) -> None:
        await self.open(_ignore)
        await self.close()

    async def execute(self, operation: Operation[ResultT], *, writes: bool = True, atomic: bool = True) -> ResultT:
        return await self._writer.execute(operation, writes=writes, atomic=atomic)

    def read_now(self, operation: Operation[ResultT]) -> ResultT:
        """Read from memory without waiting."""
        return self._writer.read_now(operation)

    async def take(self) -> None:
        """Begin what is queued in memory, without waiting for the worker to wake up."""
        if self._worker is not None:
            await self._worker.take()

    def worker(self, execution: IExecution, tools: Mapping[str, int]) -> ITaskWorker:
        taken = None if self._path is None else tools
        self._worker = SqliteWorker(self, self.statements, self._settings, execution=execution, tools=taken)
        return self._worker

    async def tidy(self) -> None:
        """Do nothing: the table of tasks is the queue."""

    async def close(self) -> None:
        await self._writer.close()
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._own.unlink(missing_ok=True)

    def _listen(self, directory: Path) -> None:
        """Receive the datagrams of other processes; without sockets, look for changes more often."""
        self._own = directory / secrets.token_hex(8)
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            _check_owned(directory)
            own = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            own.bind(str(self._own))
        except (OSError, AttributeError) as error:
            _log.info("tasks: processes cannot wake each other (%s), so they look for changes every 50 ms", error)
            self.poll_seconds = _POLL_WITHOUT_SOCKETS_SECONDS
            return
        own.setblocking(False)
        self._socket = own
        asyncio.get_running_loop().add_reader(own, self._receive)

    def _receive(self) -> None:
        assert self._socket is not None
        for _ in range(100):
            try:
                message = self._socket.recv(_MAX_DATAGRAM)
            except OSError:
                return
            self._notice(message.decode("ascii", "replace").split("\n"))

    def _notice(self, names: list[str]) -> None:
        queued, *changed = names
        if changed:
            self._changed(changed)
        if queued and self._worker is not None:
            self._worker.wake()

    def _after_commit(self, effects: Effects) -> None:
        """Tell all processes what has changed; one that does not listen finds out when it looks."""
        names = ["queued" if effects.queued else "", *effects.changed]
        self._notice(names)
        if self._socket is None:
            return
        message = "\n".join(names).encode("ascii", "replace")[:_MAX_DATAGRAM]
        with suppress(OSError):
            for path in self._own.parent.iterdir():
                if path.name != self._own.name and path.is_socket():
                    self._send(message, path)

    def _send(self, message: bytes, path: Path) -> None:
        assert self._socket is not None
        try:
            self._socket.sendto(message, str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            path.unlink(missing_ok=True)  # its process has ended
        except OSError:
            return  # it is busy, and will look by itself


def _make_private(path: Path) -> None:
    """Create the file so that only its owner can read it; the files beside it get the same mode from SQLite."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.close(descriptor)


def _check_owned(directory: Path) -> None:
    """Raise PermissionError for a directory that somebody else has made: what is not in use there is deleted."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{directory} is a link, or belongs to another user")


def refuse_network_file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> None:
    """Raise ConfigurationError for a file on a network file system, where locks do not work reliably."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return  # not Linux
    real = path.resolve()
    best: tuple[int, str] = (-1, "")
    for line in lines:
        before, _, after = line.partition(" - ")
        place, kind = Path(before.split()[4]), after.split()[0]
        if real.is_relative_to(place):
            best = max(best, (len(str(place)), kind), key=lambda one: one[0])
    if best[1] in _NETWORK_FILE_SYSTEMS:
        raise ConfigurationError(
            f"Setting tasks.url: {path} is on a network file system ({best[1]}), where SQLite can lose data; use a "
            "local disk, or postgresql://"
        )


def _ignore(task_ids: Iterable[str]) -> None:
    """Ignore changes before the database is open."""
