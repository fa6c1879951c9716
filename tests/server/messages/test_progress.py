"""Progress that is reported too fast, from threads, or too late."""

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from axolotl_core import Context, ITool, NoArguments, tool
from axolotl_server.protocol import flow_control
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.peers.wire import call, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, serving, until
from tests.support.tools import Probe


class Steps(BaseModel):
    steps: int


def numbers(messages: list[Any]) -> list[float]:
    return [one["params"]["progress"] for one in messages if one.get("method") == "notifications/progress"]


async def until_reply(peer: Peer) -> list[Any]:
    messages = [await peer.receive()]
    while "id" not in messages[-1]:
        messages.append(await peer.receive())
    return messages


class Burst(ITool[Steps, str]):
    """Reports a burst and then waits."""

    name = "burst"

    def __init__(self) -> None:
        self.release = asyncio.Event()

    async def execute(self, arguments: Steps, context: Context) -> str:
        for step in range(1, arguments.steps + 1):
            context.report_progress(step)
        await self.release.wait()
        return "done"


async def test_held_progress_is_sent_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last progress of a burst is sent after the interval, exactly once."""
    burst = Burst()
    monkeypatch.setattr("axolotl_server.protocol.request.PROGRESS_PER_SECOND", 2)
    async with conversing(container_with((burst,))) as host:
        peer = Peer(host)
        peer.call("burst", {"steps": 50}, progressToken=1)
        assert numbers([await peer.receive() for _ in range(3)]) == [1, 2, 50]
        burst.release.set()
        assert numbers(await until_reply(peer)) == []
        assert await peer.close() == []


@pytest.mark.parametrize("total", [None, 1], ids=["without total", "beyond total"])
async def test_the_rate_limit_is_enforced(total: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that reports all the time sends one burst and then as many reports per second as allowed."""
    per_second, seconds = 20, 0.0

    @tool
    async def chatter(context: Context) -> str:
        """Report all the time."""
        nonlocal seconds
        start = time.monotonic()
        for step in range(1, 301):
            context.report_progress(step, total)
            await asyncio.sleep(0.002)  # sleeps: the rate is about time
        seconds = time.monotonic() - start
        return "done"

    monkeypatch.setattr("axolotl_server.protocol.request.PROGRESS_PER_SECOND", per_second)
    async with conversing(container_with((chatter,))) as host:
        peer = Peer(host)
        peer.call("chatter", progressToken=1)
        heard = numbers(await until_reply(peer))
    assert heard[-1] == 300
    assert len(heard) <= per_second + per_second * seconds + 2  # the one in advance, and the last one


async def test_a_thread_reports_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of reports from a thread arrive in increasing order, including the last one."""

    @tool(execution="thread")
    def climb(context: Context) -> str:
        """Report without end."""
        for step in range(1, 5001):
            context.report_progress(step, 5000)
        return "there"

    monkeypatch.setattr("axolotl_server.protocol.request.PROGRESS_PER_SECOND", 200)
    async with conversing(container_with((climb,))) as host:
        peer = Peer(host)
        for number in range(5):
            peer.call("climb", id=number, progressToken=number)
            heard = numbers(await until_reply(peer))
            assert heard == sorted(set(heard))
            assert heard[-1] == 5000


async def test_a_busy_loop_does_not_turn_reports_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report from a thread never overtakes one that was held back."""
    now, per_second = 0.0, 0.001
    monkeypatch.setattr(flow_control, "time", SimpleNamespace(monotonic=lambda: now))
    blocked, reported = threading.Event(), threading.Event()

    @tool(execution="thread")
    def hurry(context: Context) -> str:
        """Report a burst, and more when the last report is due."""
        context.report_progress(1)
        context.report_progress(2)
        blocked.wait(PATIENCE_SECONDS)
        context.report_progress(3)
        context.report_progress(4)
        reported.set()
        return "there"

    def block() -> None:
        nonlocal now
        now += 1 / per_second
        blocked.set()
        reported.wait(PATIENCE_SECONDS)

    monkeypatch.setattr("axolotl_server.protocol.request.PROGRESS_PER_SECOND", per_second)
    async with conversing(container_with((hurry,))) as host:
        peer, loop = Peer(host), asyncio.get_running_loop()
        peer.call("hurry", progressToken=1)
        heard = [await peer.receive()]
        await until(lambda: _timers_of_held_ones(loop))
        [timer] = _timers_of_held_ones(loop)
        send_held = timer._callback
        timer.cancel()
        loop.call_soon(block)  # in the turn in which the timer ends
        loop.call_soon(send_held)
        heard += await until_reply(peer)
    assert numbers(heard) == [1, 2, 4]


def _timers_of_held_ones(loop: Any) -> list[Any]:
    return [timer for timer in loop._scheduled if "send_held_progress" in repr(timer) and not timer.cancelled()]


async def test_progress_after_the_reply_is_dropped() -> None:
    """Progress that is reported after the end of a call is dropped."""
    probe = Probe()
    async with conversing(container_with((probe,))) as host:
        peer = Peer(host)
        peer.call("probe", progressToken=1)
        await probe.started.wait()
        probe.release.set()
        assert (await peer.receive())["id"] == 1
        assert probe.context is not None
        probe.context.report_progress(5)
        await asyncio.to_thread(probe.context.report_progress, 6)
        assert await peer.close() == []


async def test_nan_and_infinity_are_dropped() -> None:
    """NaN and infinite values are dropped."""

    class Odd(ITool[NoArguments, str]):
        name = "odd"

        async def execute(self, arguments: NoArguments, context: Context) -> str:
            for value in (float("nan"), float("-inf"), 1.0, float("inf"), 2.0):
                context.report_progress(value)
            return "done"

    async with conversing(container_with((Odd(),))) as host:
        peer = Peer(host)
        peer.call("odd", progressToken=1)
        assert numbers(await until_reply(peer)) == [1, 2]


async def test_a_client_that_takes_no_stream_gets_the_reply() -> None:
    """A client that does not accept streams gets only the reply."""
    probe = Probe(progress=True)
    probe.release.set()
    headers = {**mirrored(name="probe"), "Accept": "application/json"}
    async with serving(container_with((probe,))) as server, httpx2.AsyncClient(verify=False) as http:
        reply = await http.post(server.url, content=call("probe", token=1), headers=headers, timeout=PATIENCE_SECONDS)
        assert reply.headers["content-type"] == "application/json"
        assert reply.json()["id"] == 1


async def test_calls_report_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress of concurrent calls is throttled separately."""
    bursts = Burst()
    bursts.release.set()
    monkeypatch.setattr("axolotl_server.protocol.request.PROGRESS_PER_SECOND", 2)
    async with conversing(container_with((bursts,))) as host:
        peer = Peer(host)
        for token in ("a", "b"):
            peer.call("burst", {"steps": 9}, id=token, progressToken=token)
            messages = await until_reply(peer)
            assert numbers(messages) == [1, 2, 9]
            assert {one["params"]["progressToken"] for one in messages[:-1]} == {token}
