"""Servers among files that are named like libraries, programs that tools start, and an unusable stderr."""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.commands import PATIENCE_SECONDS, ROOT, ForkedCommand, environment_with
from tests.support.peers.wire import call, mirrored
from tests.support.processes import READY

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="workers, /dev/full")]

_TOOLS = """
import os
import signal
from axolotl_core import tool
from dependency_injector import containers, providers

@tool
def inherited() -> list[str]:
    \"\"\"List what a program gets from the server besides its standard streams.\"\"\"
    os.system("ls -l /proc/self/fd > listed")
    with open("listed") as lines:
        return [line.strip() for line in lines if "->" in line]

class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(inherited))
"""
_STRANGER = """
with open("imported", "a") as file:
    file.write(__name__ + "\\\\n")
"""
LIBRARIES = ("msgspec", "uvloop", "uvicorn", "redis", "typer", "watchfiles")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a server, and with files that are named like libraries."""
    (tmp_path / "own_tools.py").write_text(_TOOLS)
    for name in LIBRARIES:
        (tmp_path / f"{name}.py").write_text(_STRANGER)
    return tmp_path


@contextmanager
def running(project: Path, *words: str) -> Iterator[str]:
    """Start a command in a directory until the block ends, and give the URL that it prints."""
    command = [sys.executable, "-P", "-m", "axolotl_cli", *words]
    own = environment_with(PYTHONPATH=str(ROOT))
    with subprocess.Popen(command, cwd=project, env=own, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        watchdog = threading.Timer(PATIENCE_SECONDS, process.kill)
        watchdog.start()
        lines = []
        for line in process.stderr:
            lines.append(line)
            if READY in line:
                break
        try:
            yield next(word for word in "".join(lines).split() if word.startswith("http://"))
        finally:
            watchdog.cancel()
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def call_tool(url: str, name: str) -> Any:
    """Call a tool and return its structured result."""
    request = urllib.request.Request(url, call(name), mirrored(name=name))
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as reply:
        return json.load(reply)["result"]["structuredContent"]


@pytest.mark.parametrize(
    "words",
    [("serve", "-t", "http"), ("serve", "-t", "http", "--workers", "2"), ("dev",)],
    ids=["one process", "workers", "dev"],
)
def test_files_do_not_shadow_libraries(project: Path, words: tuple[str, ...]) -> None:
    """Files of the current directory are imported if the target needs them, but never instead of a library."""
    with running(project, *words, "own_tools:Container", "--port", "0") as url:
        assert call_tool(url, "inherited")
    assert not (project / "imported").exists(), (project / "imported").read_text()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc")
def test_programs_inherit_only_the_standard_streams(project: Path) -> None:
    """A program that a tool of a worker starts gets neither the listening socket nor the channel to the supervisor."""
    with running(project, "serve", "-t", "http", "--workers", "2", "own_tools:Container", "--port", "0") as url:
        listed = call_tool(url, "inherited")
    others = [line for line in listed if int(line.split(" -> ")[0].split()[-1]) > 2]
    assert all(line.endswith(("/listed", "/fd")) or "/proc/" in line for line in others), others


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full")
def test_an_unusable_stderr(project: Path, workers: str) -> None:
    """A server whose stderr is on a full disk, or a pipe that nobody reads, starts, serves and ends."""
    full = os.open("/dev/full", os.O_WRONLY)
    reading, broken = os.pipe()
    os.close(reading)
    for stderr in (full, broken):
        server = ForkedCommand(
            *("serve", "-t", "http", "-p", "0", "--workers", workers, "own_tools:Container"),
            directory=project,
            environment=environment_with(PYTHONPATH=str(ROOT)),
            stderr=stderr,
        )
        try:
            port = listening_port(server.pid)
            assert call_tool(f"http://127.0.0.1:{port}/mcp", "inherited")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
            os.close(server.report)
        os.close(stderr)
        assert server.returncode == 0


def listening_port(pid: int) -> int:
    """Wait until a process, or a child of it, listens, and return the port."""
    while True:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for process in family:
            for one in process.net_connections("tcp"):
                if one.status == psutil.CONN_LISTEN:
                    return int(one.laddr.port)
