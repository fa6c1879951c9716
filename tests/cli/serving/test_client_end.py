"""The end of a server over stdio whose client has ended, in real processes."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from tests.support.commands import PATIENCE_SECONDS, ROOT, constants, environment_with
from tests.support.peers.wire import call, message
from tests.support.servers.server_process import TARGET, starting

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="parents and pipes")]

SLACK = 3.0
"""How much longer everything may take on a machine with other work."""
_PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-m", "axolotl_cli", "serve", sys.argv[1]])
time.sleep(600)
"""


class Orphan:
    """A server whose parent process dies while the pipes stay open."""

    def __init__(self, parent: "subprocess.Popen[bytes]") -> None:
        self._parent = parent
        self.ask(message("ping"))
        (self.process,) = psutil.Process(parent.pid).children()

    def say(self, data: bytes) -> None:
        assert self._parent.stdin is not None
        self._parent.stdin.write(data + b"\n")
        self._parent.stdin.flush()

    def ask(self, data: bytes) -> Any:
        assert self._parent.stdout is not None
        self.say(data)
        return json.loads(self._parent.stdout.readline())

    def kill_parent(self) -> None:
        self._parent.kill()
        self._parent.wait()

    def read_log(self) -> str:
        assert self._parent.stderr is not None
        return self._parent.stderr.read().decode()

    def read_log_until(self, text: str) -> None:
        assert self._parent.stderr is not None
        while text not in self._parent.stderr.readline().decode():
            pass


@contextmanager
def orphan(**environment: str) -> Iterator[Orphan]:
    """Start a parent process and its server, with pipes to this process."""
    pipe = subprocess.PIPE
    own = environment_with(PYTHONPATH=str(ROOT), **environment)
    words = [sys.executable, "-c", _PARENT, TARGET]
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=own, cwd=ROOT) as parent:
        started = Orphan(parent)
        try:
            yield started
        finally:
            parent.kill()
            if started.process.is_running():
                started.process.kill()


def test_the_end_of_the_parent_ends_the_server() -> None:
    """A server whose parent has ended stops within five seconds, although its input is still open."""
    with orphan() as server:
        server.say(call("hang"))
        server.read_log_until("hang runs")
        server.kill_parent()
        began = time.monotonic()
        server.process.wait(PATIENCE_SECONDS)
        assert time.monotonic() - began < 5 + SLACK
        log = server.read_log()
        assert "the parent process has ended, so this server stops" in log
        assert "cache closed" in log


def test_the_end_of_the_parent_ends_a_blocked_server() -> None:
    """The same if a tool blocks the event loop."""
    with orphan() as server:
        server.say(call("hold_the_loop"))
        server.read_log_until("hold_the_loop runs")
        server.kill_parent()
        began = time.monotonic()
        server.process.wait(PATIENCE_SECONDS)
        assert time.monotonic() - began < 5 + SLACK
        assert "in hold_the_loop" in server.read_log()


async def test_the_end_of_the_input_ends_a_blocked_server() -> None:
    """If a tool blocks the event loop when the input ends, the server exits after the time for a shutdown."""
    async with starting(
        TARGET,
        **constants({"axolotl_cli.serving.stdio.DRAIN_SECONDS": 0.2, "axolotl_cli.serving.stdio.CLOSE_SECONDS": 0.3}),
    ) as server:
        server.say(call("hold_the_loop"))
        await server.until("hold_the_loop runs")
        server.stdin.close()
        began = time.monotonic()
        assert await server.ended() == 1
    assert server.ended_at - began < 0.5 + 1 + SLACK
    assert "the server did not stop within 0.5 seconds: exiting" in server.log
    assert "in hold_the_loop" in server.log
