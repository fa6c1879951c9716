"""The end of a server while code is stuck in every way: all are answered, and the process ends with 0, in time."""

import asyncio
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

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

TARGET = "tests.faults.tools:Patient"
STUCK = ["hang", "swallow_everything", "block", "hang_in_thread", "spin"]
IN_TIME = 15.0
"""How long a server may take whose code is given no time at all: a few seconds, on a machine with other work."""


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Start processes that end with the test."""
    with Processes() as started:
        yield started


def settle(server: Server, began: float) -> str:
    """Wait for the end of a server, see that it was a good one, and give its log."""
    children = psutil.Process(server.process.pid).children(recursive=True)
    code, _, stderr = server.end()
    assert code == 0, stderr
    assert time.monotonic() - began < IN_TIME
    assert "Traceback" not in stderr
    for child in children:
        wait_until_gone(child.pid)
    return stderr


def test_over_stdio(processes: Processes) -> None:
    """Every call is told that the server ends, by a signal or by the end of its input, whatever its code does."""
    servers = [processes.start("serve", TARGET) for _ in range(2)]
    for server in servers:
        server.shake_hands()
        for name in STUCK:
            _call(server, name, name)
    for server in servers:
        _wait_until_running(server, len(STUCK))
    began = time.monotonic()
    signalled, ended = servers
    signalled.signal(signal.SIGTERM)
    assert ended.process.stdin is not None
    ended.process.stdin.close()
    ended.process.stdin = None
    for server in servers:
        answers = [server.hear() for _ in STUCK]
        assert sorted(answer["id"] for answer in answers) == sorted(STUCK)
        assert {answer["result"]["_meta"]["reason"] for answer in answers} == {"shutdown"}
    assert all("left behind" in settle(server, began) for server in servers)


def test_over_http(processes: Processes) -> None:
    """The same over HTTP, where answers go out though requests are stuck; a second signal ends a patient server too."""
    hasty = processes.start("serve", TARGET, "-t", "http", "--port", "0")
    patient = processes.start("serve", TARGET, "-t", "http", "--port", "0", AXOLOTL_HTTP__DRAIN_SECONDS="60")
    began, answers = asyncio.run(_stop_both(hasty, patient))
    assert {answer["result"]["_meta"]["reason"] for answer in answers} == {"shutdown"}
    assert len(answers) == 2 * len(STUCK)
    assert all("left behind" in settle(server, began) for server in (hasty, patient))


async def _stop_both(hasty: Server, patient: Server) -> tuple[float, list[Any]]:
    urls = [server.read_until(READY).splitlines()[0].rpartition(" ")[2] for server in (hasty, patient)]
    stopping = [_stop_while_busy(hasty, urls[0], 1), _stop_while_busy(patient, urls[1], 2)]
    (began, some), (_, others) = await asyncio.gather(*stopping)
    return began, [*some, *others]


async def _stop_while_busy(server: Server, url: str, signals: int) -> tuple[float, list[Any]]:
    async with httpx2.AsyncClient(timeout=60) as http:
        wire = HttpWire(http, url, legacy=False)
        calls = [wire.begin(name)[1] for name in STUCK]
        while (await wire.call("census"))["structuredContent"]["inflight"] < len(STUCK):
            pass
        began = time.monotonic()
        for _ in range(signals):
            server.signal(signal.SIGTERM)
            await asyncio.sleep(0.5)  # sleeps: two signals at once are one
        return began, await asyncio.gather(*calls)


def _call(server: Server, name: str, number: str) -> None:
    params = {"name": name, "arguments": {}}
    server.say({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def _wait_until_running(server: Server, number: int) -> None:
    while True:
        _call(server, "census", "census")
        if server.hear()["result"]["structuredContent"]["inflight"] == number:
            return
