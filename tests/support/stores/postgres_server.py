"""A Postgres server for tests, started once per test run, with a database for each test."""

import atexit
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

_USERS = ("postgres", "nobody")
_START_SECONDS = 30
_numbers = itertools.count(1)


def program(name: str) -> str | None:
    """Find a program of Postgres, also where Debian hides it."""
    hidden = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(hidden[-1]) if hidden else None)


class PostgresServer:
    """A server on a Unix socket in a directory of its own."""

    def __init__(self, *, is_durable: bool = False) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="axolotl-pg-"))
        self._fsync = "on" if is_durable else "off"
        self._process: subprocess.Popen[bytes] | None = None
        # Postgres refuses to run as root.
        self._user = next(filter(_exists, _USERS)) if os.geteuid() == 0 else None
        data = self.directory / "data"
        data.mkdir(mode=0o700)
        if self._user is not None:
            self.directory.chmod(0o755)
            for path in (self.directory, data):
                shutil.chown(path, self._user, None)
        initdb = program("initdb")
        assert initdb is not None
        subprocess.run(
            [initdb, "-D", str(data), "-U", "axolotl", "-A", "trust", "--no-sync", "-E", "UTF8"],
            check=True,
            capture_output=True,
            user=self._user,
            cwd=self.directory,
        )

    def url(self, database: str = "postgres") -> str:
        """Give the URL of a database."""
        return f"postgresql://axolotl@/{database}?host={self.directory}"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        postgres = program("postgres")
        assert postgres is not None
        options = {"fsync": self._fsync, "listen_addresses": "", "unix_socket_directories": str(self.directory)}
        options.update(max_connections="200", shared_buffers="32MB", log_min_messages="fatal")
        arguments = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [postgres, "-D", str(self.directory / "data"), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user,
            cwd=self.directory,
        )
        deadline = time.monotonic() + _START_SECONDS
        while not self.psql("select 1", check=False):
            assert time.monotonic() < deadline, "Postgres does not start"
            time.sleep(0.05)  # sleeps: Postgres has no event for that

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop the server: fast, or in another way."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_START_SECONDS)
            self._process = None

    def psql(self, statement: str, database: str = "postgres", *, check: bool = True) -> str:
        """Execute a statement and return the output; empty if it failed."""
        psql = program("psql")
        assert psql is not None
        command = [psql, "-h", str(self.directory), "-U", "axolotl", "-d", database, "-tAc", statement]
        ran = subprocess.run(command, capture_output=True, text=True, check=check)
        return ran.stdout.strip() if ran.returncode == 0 else ""

    def remove(self) -> None:
        """Stop the server and delete its files."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)


def _exists(user: str) -> bool:
    import pwd

    return any(entry.pw_name == user for entry in pwd.getpwall())


def require_postgres() -> None:
    """Skip the test if Postgres is not installed; in continuous integration that is a failure."""
    if program("postgres") is None or program("psql") is None:
        if os.environ.get("CI"):
            pytest.fail("Postgres is not installed: apt-get install postgresql")
        pytest.skip("Postgres is not installed")


@cache
def shared_postgres() -> PostgresServer:
    """Start the server that all tests share."""
    server = PostgresServer()
    atexit.register(server.remove)
    server.start()
    return server


@contextmanager
def postgres_database(server: PostgresServer | None = None) -> Iterator[str]:
    """Create an empty database and give its URL."""
    require_postgres()
    chosen = shared_postgres() if server is None else server
    name = f"test_{os.getpid()}_{next(_numbers)}"
    chosen.psql(f"create database {name}")
    yield chosen.url(name)
    chosen.psql(f"drop database if exists {name} with (force)", check=False)
