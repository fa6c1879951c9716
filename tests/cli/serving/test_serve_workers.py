"""`axolotl serve --workers`: start, errors, reload and stop."""

import json
import os
import re
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from axolotl_cli.serving.shared_folder import keep_folder, sessions_directory
from axolotl_core import ConfigurationError
from axolotl_server.settings.server import ServerSettings
from tests.cli.conftest import CommandLine
from tests.cli.serving.test_serve_http import call
from tests.support.processes import READY, Processes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes share no sockets")

SAMPLE = "tests.support.containers.command_containers:Container"
EAGER = "tests.support.containers.command_containers:Eager"
TWO = ("serve", "-t", "http", "--port", "0", "--workers", "2")


@pytest.mark.parametrize(
    ("target", "path", "finding"),
    [
        pytest.param("nowhere:Container", "a-{worker}.log", "Module 'nowhere' not found", id="target"),
        pytest.param(SAMPLE, "a.log", "audit.jsonl_path needs {worker} in its name", id="audit"),
    ],
)
def test_errors_are_reported_once(processes: Processes, target: str, path: str, finding: str) -> None:
    """A server that cannot start reports the reason once for all workers, and ends with 2."""
    code, stdout, stderr = processes.run(*TWO, target, AXOLOTL_AUDIT__JSONL_PATH=path)
    assert (code, stdout, stderr.count("Error: ")) == (2, "", 1)
    assert finding in stderr
    assert "axolotl: " not in stderr  # no line of the log repeats it


def test_a_taken_port(processes: Processes) -> None:
    """A port that is in use is reported on one line, as with one worker."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, stdout, stderr = processes.run("serve", SAMPLE, "-t", "http", "--port", port, "--workers", "2")
    assert (code, stdout) == (2, "")
    assert stderr == f"Error: Port {port} on 127.0.0.1 is in use: choose another with --port, or 0 for a free one\n"


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        pytest.param(("serve", "-w", "2"), "--workers has no effect over stdio", id="stdio"),
        pytest.param((*TWO, SAMPLE), "sse_path needs workers = 1", id="sse"),
        pytest.param(("serve", "-t", "http", "-w", "0"), "'--workers'", id="none"),
        pytest.param(("serve", "-t", "http", EAGER), "The container cannot set http.workers", id="role"),
    ],
)
def test_invalid_options(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], finding: str
) -> None:
    """Options that several workers cannot support, or that have no effect, are refused before a worker starts."""
    monkeypatch.setenv("COLUMNS", "200")
    if words == (*TWO, SAMPLE):
        monkeypatch.setenv("AXOLOTL_HTTP__SSE_PATH", "/sse")
    answer = cli(*words)
    assert (answer.code, answer.stdout) == (2, "")
    assert finding in answer.stderr


def test_workers_that_die_at_once(processes: Processes) -> None:
    """Workers that die before they serve are restarted a few times; then the server gives up with 1."""
    code, stdout, stderr = processes.run(*TWO, "tests.support.containers.dying_container:Container")
    assert (code, stdout) == (1, "")
    assert stderr.count("exited with code 7 before it served") == 3
    assert "no worker serves, and none can be started: giving up" in stderr


def test_reload_and_shutdown(processes: Processes, pipe: Path, tmp_path: Path) -> None:
    """A failed reload keeps the workers; a signal drains all of them, and a second one makes them hurry."""
    settings = tmp_path / "axolotl.toml"
    settings.write_text("[http]\ndrain_seconds = 600\n", encoding="utf-8")
    server = processes.start(*TWO, SAMPLE, directory=tmp_path)
    found = re.search(r" at (http://\S+)", server.read_until(READY))
    assert found
    server.read_until("2 workers serve")
    settings.write_text("[http]\nnonsense = 1\n", encoding="utf-8")
    server.signal(signal.SIGHUP)
    assert "nonsense" in server.read_until("the reload failed")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(call, found[1], "read", path=str(pipe))
        server.read_until("reading")
        server.signal(signal.SIGTERM)
        server.read_until("running calls: 1")
        server.signal(signal.SIGTERM)
        assert "shutting down" in json.dumps(running.result()["result"])
    assert server.end()[0] == 0


BLOCKING = """
import time
from dependency_injector import containers, providers
from axolotl_core import tool

@tool
async def block(seconds: float) -> str:
    time.sleep(seconds)
    return "done"

class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(block))
"""


@pytest.mark.parametrize("how", ["a blocked event loop", "a stopped process"])
def test_a_stuck_worker_is_replaced(processes: Processes, tmp_path: Path, how: str) -> None:
    """A worker that responds to no ping is killed and replaced; one that is busy for a shorter time is not."""
    (tmp_path / "blocking.py").write_text(BLOCKING, encoding="utf-8")
    server = processes.start(*TWO, "blocking.py", directory=tmp_path, AXOLOTL_HTTP__WORKER_TIMEOUT_SECONDS="3")
    found = re.search(r" at (http://\S+)", server.read_until(READY))
    assert found
    pids = re.findall(r"(\d+)", server.read_until("2 workers serve").rpartition("serve:")[2])
    assert call(found[1], "block", seconds=1)["result"]["content"][0]["text"] == "done"
    if how == "a stopped process":
        os.kill(int(pids[0]), signal.SIGSTOP)
    else:
        with pytest.raises(httpx2.HTTPError):
            call(found[1], "block", seconds=600)
    log = server.read_until(" serves")
    assert re.search(r"worker \d \(process \d+\) has not responded for 3 seconds and is killed", log)
    assert "was killed by SIGKILL: starting another" in log
    assert log.count("is killed") == 1
    assert call(found[1], "block", seconds=0)["result"]["content"][0]["text"] == "done"


def test_no_place_for_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no directory can be created for shared sessions, the error says what to set, unless nothing needs it."""
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with (
        pytest.raises(ConfigurationError, match=r"set sessions\.directory, redis\.url or TMPDIR"),
        sessions_directory(ServerSettings()),
    ):
        pytest.fail("there is no such directory")
    for settings in ({"sessions": {"directory": "/own"}}, {"redis": {"url": "redis://127.0.0.1"}}):
        with sessions_directory(ServerSettings.model_validate(settings)) as directory:
            assert directory is None


def test_folders_of_killed_servers_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A start removes the folders that no process keeps, and no others, whatever lies beside them."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    left, kept, link, file, other = (tmp_path / f"axolotl-s-{name * 8}" for name in "abcd_")
    for folder in (left, kept, tmp_path / "axolotl-s-mine"):
        folder.mkdir()
        (folder / "sessions.db").touch()
    link.symlink_to(elsewhere)
    file.touch()
    other.mkdir()
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() if not other.exists() else os.getuid() + 1)
    with sessions_directory(ServerSettings()):
        assert left.exists()  # it belongs to another user
    other.rmdir()
    lock = keep_folder(str(kept))
    assert lock is not None
    with sessions_directory(ServerSettings()) as first, sessions_directory(ServerSettings()) as second:
        assert first != second
        names = {path.name for path in tmp_path.iterdir()}
        expected = {str(path) for path in (first, second, kept, link, file, elsewhere)}
        assert names == {*map(os.path.basename, expected), "axolotl-s-mine"}
    assert (elsewhere / "kept").exists()
    os.close(lock)
    with sessions_directory(ServerSettings()):
        assert not kept.exists()
    assert keep_folder(str(kept)) is None


def test_a_folder_that_is_removed_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder that another start removes before it is locked is made again."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened, made = os.open, 0

    def open_late(path: Any, flags: int, *arguments: Any) -> int:
        nonlocal made
        if flags & os.O_DIRECTORY and Path(path).parent == tmp_path:
            made += 1
            descriptor = opened(path, flags, *arguments)
            if made < 3:
                os.rmdir(path)
            return descriptor
        return opened(path, flags, *arguments)

    monkeypatch.setattr("os.open", open_late)
    with sessions_directory(ServerSettings()) as directory:
        monkeypatch.setattr("os.open", opened)
        assert directory is not None
        assert (made, os.listdir(tmp_path)) == (3, [os.path.basename(directory)])
    assert os.listdir(tmp_path) == []
