"""Shutdown while code hangs in every way: all calls are answered, and the process exits with 0 in time."""

import asyncio
import re
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import psutil
import pytest

from tests.faults.wires import HttpWire
from tests.support.forked_processes import wait_until_gone
from tests.support.processes import READY, Processes, Server

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals")]

TARGET = "tests.faults.tools:Patient"
STUCK = ["hang", "swallow_everything", "block", "hang_in_thread", "spin"]
IN_TIME = 15.0
"""The time limit for a server with no grace period; a busy machine needs a few seconds."""

_Stopped = tuple[float, list[psutil.Process], list[Any]]
"""The time of the shutdown, the child processes, and the replies to the calls."""


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Processes that end with the test."""
    with Processes() as started:
        yield started


def children_of(server: Server) -> list[psutil.Process]:
    """List the child processes of a server."""
    return psutil.Process(server.process.pid).children(recursive=True)


def settle(server: Server, children: list[psutil.Process], began: float) -> str:
    """Wait for the server and its children to end, check the exit code, and return the log."""
    code, _, stderr = server.end()
    assert code == 0, stderr
    assert time.monotonic() - began < IN_TIME
    assert "Traceback" not in stderr
    for child in children:
        wait_until_gone(child.pid)
    return stderr


def test_over_stdio(processes: Processes) -> None:
    """On a signal or the end of its input, every call gets a reply about the shutdown, whatever its code does."""
    servers = [processes.start("serve", TARGET) for _ in range(2)]
    for server in servers:
        server.shake_hands()
        for name in STUCK:
            _call(server, name, name)
    for server in servers:
        _wait_until_running(server, len(STUCK))
    children = [children_of(server) for server in servers]
    began = time.monotonic()
    signalled, ended = servers
    signalled.signal(signal.SIGTERM)
    assert ended.stdin is not None
    ended.stdin.close()
    for server in servers:
        answers = [server.hear() for _ in STUCK]
        assert sorted(answer["id"] for answer in answers) == sorted(STUCK)
        assert {answer["result"]["_meta"]["axolotl/reason"] for answer in answers} == {"shutdown"}
    for server, started in zip(servers, children, strict=True):
        assert "did not end" in settle(server, started, began)


def test_over_http(processes: Processes) -> None:
    """The same over HTTP; a second signal also ends a server with a long grace period."""
    hasty = processes.start("serve", TARGET, "-t", "http", "--port", "0")
    patient = processes.start("serve", TARGET, "-t", "http", "--port", "0", AXOLOTL_HTTP__DRAIN_SECONDS="60")
    for server, stopped in zip((hasty, patient), asyncio.run(_stop_both(hasty, patient)), strict=True):
        began, children, answers = stopped
        assert {answer["result"]["_meta"]["axolotl/reason"] for answer in answers} == {"shutdown"}
        assert len(answers) == len(STUCK)
        assert "did not end" in settle(server, children, began)


async def _stop_both(hasty: Server, patient: Server) -> tuple[_Stopped, _Stopped]:
    urls = [server.read_until(READY).splitlines()[0].rpartition(" ")[2] for server in (hasty, patient)]
    return await asyncio.gather(_stop_while_busy(hasty, urls[0], 1), _stop_while_busy(patient, urls[1], 2))


async def _stop_while_busy(server: Server, url: str, signals: int) -> _Stopped:
    async with httpx2.AsyncClient(timeout=60) as http:
        wire = HttpWire(http, url, handshake=False)
        calls = [wire.begin(name)[1] for name in STUCK]
        while (await wire.call("census"))["structuredContent"]["inflight"] < len(STUCK):
            pass
        children = children_of(server)
        began = time.monotonic()
        for _ in range(signals):
            server.signal(signal.SIGTERM)
            await asyncio.sleep(0.5)  # sleeps: two signals at once are one
        return began, children, await asyncio.gather(*calls)


def test_three_signals(processes: Processes) -> None:
    """The third Ctrl-C exits at once with the code of the signal, and only log lines are printed."""
    for delay in (0.01, 0.03, 0.1):  # 0.2 seconds after the second one, the server exits by itself
        server = processes.start("serve", TARGET)
        server.shake_hands()
        _call(server, "block", "block")
        _wait_until_running(server, 1)
        for _ in range(3):
            server.signal(signal.SIGINT)
            time.sleep(delay)  # sleeps: two signals at once are one, and they meet the server in different steps
        code, _, stderr = server.end()
        assert code == 130, stderr
        assert all(re.match(r"\d\d:\d\d:\d\d \w+ +axolotl: ", line) for line in stderr.splitlines()), stderr


def _call(server: Server, name: str, number: str) -> None:
    params = {"name": name, "arguments": {}}
    server.say({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def _wait_until_running(server: Server, number: int) -> None:
    while True:
        _call(server, "census", "census")
        if server.hear()["result"]["structuredContent"]["inflight"] == number:
            return
