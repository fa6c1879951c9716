"""Progress that extends a deadline."""

import asyncio
import threading
import time
from typing import Any
from unittest.mock import patch

import pytest

from axolotl_core import Context, ITool, NoArguments, tool
from axolotl_server import InProcessClient, ServerHost, connect
from tests.support.peers.memory_peer import ACCEPTED, Peer
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import Name, container_of

pytestmark = pytest.mark.slow

SHORT = 0.25
TIMEOUT = 20.125
"""A time that nothing else has."""


class Reporting(ITool[NoArguments, str]):
    """Reports progress until it is told to stop or to end."""

    name = "reporting"
    timeout_seconds = SHORT
    max_timeout_seconds: float | None = 30.0

    def __init__(self) -> None:
        self.silent = asyncio.Event()
        self.enough = asyncio.Event()
        self.deadlines: list[float | None] = []

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        number = 0
        while not self.enough.is_set():
            number += 1
            if not self.silent.is_set():
                context.report_progress(number)
            self.deadlines.append(context.deadline)
            await asyncio.sleep(SHORT / 20)
        return "done"


async def test_progress_starts_the_deadline_anew() -> None:
    """A call that reports progress can run longer than its timeout."""
    working = Reporting()
    async with connect(container_of(working)) as client:
        running = asyncio.ensure_future(client.call("reporting"))
        await until(lambda: len(working.deadlines) > 30)
        working.enough.set()
        assert (await running).text == "done"
    assert all(one is not None for one in working.deadlines)
    assert working.deadlines == sorted(working.deadlines, key=lambda one: one or 0)


async def test_silence_ends_it() -> None:
    """A call without more progress ends one timeout after its last report."""
    working = Reporting()
    async with connect(container_of(working)) as client:
        running = asyncio.ensure_future(client.call("reporting"))
        await until(lambda: len(working.deadlines) > 20)
        working.silent.set()
        assert (await running).meta["axolotl/reason"] == "timeout"


async def test_there_is_a_ceiling() -> None:
    """A maximum limits the extension."""
    working = Reporting()
    working.max_timeout_seconds = 3 * SHORT
    began = time.monotonic()
    async with connect(container_of(working)) as client:
        assert (await client.call("reporting")).meta["axolotl/reason"] == "timeout"
    latest = max(one for one in working.deadlines if one is not None)
    assert latest - began > 2 * SHORT
    assert latest == working.deadlines[-1]


async def test_the_operator_has_the_last_word() -> None:
    """The server's maximum applies to tools that want more."""
    working = Reporting()
    async with ServerHost(container_of(working), flags={"limits": {"max_timeout_seconds": 2 * SHORT}}) as host:
        client = InProcessClient(host.handler)
        [binding] = host.assembly.tools.bindings()
        assert binding.spec.limits.max_timeout_seconds == 2 * SHORT
        assert (await client.call("reporting")).meta["axolotl/reason"] == "timeout"
        await client.close()


async def test_progress_extends_nothing_without_a_maximum() -> None:
    """Without a maximum, progress does not extend the deadline."""
    working = Reporting()
    working.max_timeout_seconds = None
    async with connect(container_of(working)) as client:
        assert (await client.call("reporting")).meta["axolotl/reason"] == "timeout"
    assert len(set(working.deadlines)) == 1


async def test_a_maximum_below_the_timeout_does_not_shorten_it() -> None:
    """A maximum below the timeout does not shorten it."""
    working = Reporting()
    working.timeout_seconds, working.max_timeout_seconds = 30.0, SHORT
    async with connect(container_of(working)) as client:
        running = asyncio.ensure_future(client.call("reporting"))
        await until(lambda: len(working.deadlines) > 30)
        working.enough.set()
        assert (await running).text == "done"


async def test_progress_creates_no_timers() -> None:
    """Calls have one timer together, however many they are and however often progress moves their deadlines."""
    timers: list[asyncio.TimerHandle] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def counted(delay: float, callback: Any, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        timer = call_later(delay, callback, *arguments, **options)
        if delay == TIMEOUT:
            timers.append(timer)
        return timer

    @tool(timeout_seconds=TIMEOUT, max_timeout_seconds=25)
    async def talk(context: Context) -> None:
        for number in range(1000):
            context.report_progress(number)

    async with connect(container_of(talk)) as client:
        with patch.object(loop, "call_later", counted):
            for _ in range(3):
                assert not (await client.call("talk")).is_error
    assert len(timers) == 1


async def test_a_thread_moves_its_deadline_too() -> None:
    """Progress from threads extends the deadline too."""
    enough = threading.Event()
    reports = 0

    @tool(timeout_seconds=SHORT, max_timeout_seconds=30)
    def work(context: Context) -> str:
        nonlocal reports
        while not enough.wait(SHORT / 20):
            reports += 1
            context.report_progress(reports)
        return "done"

    async with connect(container_of(work)) as client:
        running = asyncio.ensure_future(client.call("work"))
        await until(lambda: reports > 30)
        enough.set()
        assert (await running).text == "done"


async def test_a_thread_may_report_when_the_server_is_gone() -> None:
    """Progress of an abandoned thread is dropped after the server has stopped."""
    go_on, ended = threading.Event(), threading.Event()
    problems: list[BaseException] = []

    @tool(timeout_seconds=0.02, max_timeout_seconds=0.05)
    def work(context: Context) -> None:
        go_on.wait(PATIENCE_SECONDS)
        try:
            context.report_progress(1)
        except BaseException as error:
            problems.append(error)
        ended.set()

    async def serve() -> None:
        async with connect(container_of(work)) as client:
            assert (await client.call("work")).is_error

    await asyncio.to_thread(asyncio.run, serve())
    go_on.set()
    assert await asyncio.to_thread(ended.wait, PATIENCE_SECONDS)
    assert problems == []


@pytest.mark.parametrize("ceiling", [2 * SHORT, 30.0], ids=["reached", "far"])
async def test_progress_extends_the_deadline_after_a_question(ceiling: float) -> None:
    """After a question, progress extends the paused deadline correctly."""
    remaining: list[float | None] = []

    @tool(timeout_seconds=SHORT, max_timeout_seconds=ceiling)
    async def ask_and_hang(context: Context) -> None:
        await context.ask(Name, "who?")
        context.report_progress(1)
        remaining.append(context.remaining_seconds)
        await asyncio.Event().wait()

    async with ServerHost(container_of(ask_and_hang)) as host:
        peer = await Peer(host).shake_hands()
        peer.call("ask_and_hang")
        question = await peer.receive()
        await asyncio.sleep(3 * SHORT)  # a pause in which the deadline must not advance
        peer.answer(question, ACCEPTED)
        reply = await peer.receive()
        await peer.close()
    assert reply["result"]["_meta"]["axolotl/reason"] == "timeout"
    assert remaining[0]
