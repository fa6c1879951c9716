"""Ended calls: nothing references them, and nothing happens to them."""

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from axolotl_core import Context, tool
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_server import InProcessClient, ServerHost, connect
from tests.support.object_counts import bulkhead_of, holdings
from tests.support.peers.memory_peer import ACCEPTED, Peer, container_with, conversing, text_of
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import Name, container_of

pytestmark = pytest.mark.slow

LONG = 200.0
"""A timeout that never elapses in a test."""


def held(name: str) -> int:
    """Count the referenced calls of a tool; the names are unique among tests."""
    gc.collect()
    return sum(isinstance(one, Call) and one.spec.name == name for one in gc.get_objects())


@tool(timeout_seconds=LONG)
async def salute(context: Context) -> str:
    return f"Hello {(await context.ask(Name, 'Who?')).name}"


@tool(timeout_seconds=LONG)
async def salute_twice(context: Context) -> str:
    first, second = [(await context.ask(Name, "Who?")).name for _ in range(2)]
    return f"{first} {second}"


@tool(timeout_seconds=LONG, max_timeout_seconds=LONG + 1)
async def salute_and_report(context: Context) -> str:
    name = (await context.ask(Name, "Who?")).name
    context.report_progress(1)
    return name


@tool(timeout_seconds=LONG, max_timeout_seconds=LONG + 0.001)
async def report_late(context: Context) -> str:
    began = time.monotonic()
    await until(lambda: time.monotonic() > began + 0.002)
    context.report_progress(1)  # reaches the maximum
    return "reported"


@pytest.mark.parametrize("one", [salute, salute_twice, salute_and_report])
async def test_a_paused_deadline_releases_its_call(one: Any) -> None:
    """A call that asked a question is released before its deadline."""
    async with conversing(container_with([one])) as host:
        peer = await Peer(host).shake_hands()
        peer.call(one.name)
        message = await peer.receive()
        while "method" in message:
            peer.answer(message, ACCEPTED)
            message = await peer.receive()
        assert "Ann" in text_of(message)
        await until(lambda: not held(one.name))
        await peer.close()


async def test_a_maximum_deadline_releases_its_call() -> None:
    """A call whose deadline reached its maximum is released before it."""
    async with connect(container_of(report_late)) as client:
        assert (await client.call("report_late")).text == "reported"
        await until(lambda: not held("report_late"))


async def test_a_question_without_a_call_starts_no_clock() -> None:
    """A question that is open when the code returns does not end the call again."""
    asked = asyncio.Event()
    calls: list[Context] = []
    questions: list[asyncio.Task[Any]] = []

    @tool(timeout_seconds=LONG)
    async def leave_open(context: Context) -> str:
        calls.append(context)
        questions.append(asyncio.create_task(context.ask(Name, "Who?")))
        await asked.wait()
        return "over"

    async with conversing(container_with([leave_open])) as host:
        peer = await Peer(host).shake_hands()
        peer.call("leave_open")
        await peer.receive()
        asked.set()
        assert text_of([await peer.receive() for _ in range(2)][-1]) == "over"
        await asyncio.wait(questions)
        assert calls[0].deadline is None
        await peer.close()


async def test_a_question_after_the_end_is_not_sent() -> None:
    """A question that reaches the loop after its call has ended is not sent."""
    begun, go_on, asked = threading.Event(), threading.Event(), threading.Event()
    failures: list[BaseException] = []

    @tool(execution="thread", timeout_seconds=LONG)
    async def ask_late(context: Context) -> None:
        begun.set()
        go_on.wait(PATIENCE_SECONDS)
        asking = asyncio.ensure_future(context.ask(Name, "Who?"))
        for _ in range(3):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        asked.set()
        try:
            await asking
        except BaseException as error:
            failures.append(error)
            raise

    async with conversing(container_with([ask_late])) as host:
        peer = await Peer(host).shake_hands()
        peer.call("ask_late")
        assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        host.handler.inflight.stop_all(CancelReason.TIMEOUT)
        go_on.set()
        assert asked.wait(PATIENCE_SECONDS)  # the loop has not seen it yet
        assert (await peer.receive())["result"]["isError"]
        await until(lambda: not host.handler.inflight.zombies)
        assert failures
        assert not peer.connection.pending_answers
        assert await peer.close() == []


@asynccontextmanager
async def one_thread_taken() -> AsyncIterator[tuple[ServerHost, InProcessClient]]:
    """Serve two tools with one thread, which the first one blocks."""
    begun, free = threading.Event(), threading.Event()

    @tool(timeout_seconds=LONG)
    def block() -> str:
        begun.set()
        free.wait(LONG)
        return "free"

    @tool(timeout_seconds=0.05)
    def wait_in_vain(text: str) -> str:
        return text

    async with ServerHost(container_of(block, wait_in_vain), flags={"limits": {"threads": 1}}) as host:
        client = InProcessClient(host.handler)
        blocking = asyncio.ensure_future(client.call("block"))
        assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        try:
            yield host, client
        finally:
            free.set()
        assert (await blocking).text == "free"
        assert (await client.call("wait_in_vain", {"text": "at last"})).text == "at last"
        await client.close()


async def test_a_blocked_thread_does_not_keep_calls() -> None:
    """Calls that timed out waiting for a thread are released, however long the thread is blocked."""
    async with one_thread_taken() as (_, client):
        outcomes = await asyncio.gather(*(client.call("wait_in_vain", {"text": "x"}) for _ in range(20)))
        assert {outcome.meta["axolotl/reason"] for outcome in outcomes} == {"timeout"}
        await until(lambda: not held("wait_in_vain"))


async def test_a_call_that_never_ran_is_not_abandoned() -> None:
    """A call that was stopped while waiting for a thread is not counted as abandoned."""
    async with one_thread_taken() as (host, client):
        await asyncio.gather(*(client.call("wait_in_vain", {"text": "x"}) for _ in range(20)))
        assert host.handler.inflight.zombies.total == 0


async def test_calls_waiting_for_a_thread_are_answered_on_shutdown() -> None:
    """Calls that wait for a thread are answered on shutdown."""
    begun, free = threading.Event(), threading.Event()

    @tool(timeout_seconds=LONG)
    def block() -> None:
        begun.set()
        free.wait(PATIENCE_SECONDS)

    async with ServerHost(container_of(block), flags={"limits": {"threads": 1}}) as host:
        client = InProcessClient(host.handler)
        calls = [asyncio.ensure_future(client.call("block")) for _ in range(4)]
        assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
    async with asyncio.timeout(PATIENCE_SECONDS / 2):
        for waiting in calls[1:]:
            assert (await waiting).is_error
    free.set()
    await calls[0]
    await client.close()


class ImpatientLayer(ILayer):
    """Retries with a short timeout."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        async def tried(call: Call) -> str:
            for _ in range(2):
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await call_next(call)
            return "given up"

        return tried


async def test_every_thread_of_a_call_keeps_its_place() -> None:
    """If a layer retries, the call ends when the threads of both attempts have ended."""
    ends = [threading.Event(), threading.Event()]
    begun = iter(ends)

    calls: list[Call] = []

    @tool(max_concurrency=1)
    def block(context: Context) -> None:
        assert isinstance(context, Call)
        calls.append(context)
        next(begun).wait(LONG)

    container = container_of(block, layers=[ImpatientLayer()])
    async with ServerHost(container) as host:
        client = InProcessClient(host.handler)
        bulkhead, zombies = bulkhead_of(host, "block"), host.handler.inflight.zombies
        for first, last in ((0, 1), (1, 0)):
            assert (await client.call("block")).text == "given up"
            assert (bulkhead.running, len(zombies)) == (1, 1)
            ends[first].set()
            await until(lambda: calls[-1].leftover is not None and calls[-1].leftover.running == 1)
            assert (bulkhead.running, len(zombies)) == (1, 1)
            ends[last].set()
            await until(lambda: (bulkhead.running, len(zombies)) == (0, 0))
            ends[:] = [threading.Event(), threading.Event()]
            begun = iter(ends)
        await client.close()


async def test_a_client_that_leaves_at_the_end_of_its_call_leaves_nothing_behind() -> None:
    """A disconnection that is noticed after the end of a call is ignored."""
    calls: list[Call] = []

    class Remembering(ILayer):
        def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
            async def remembered(call: Call) -> Any:
                calls.append(call)
                return await call_next(call)

            return remembered

    @tool
    async def quick() -> str:
        return "quick"

    async with ServerHost(container_of(quick, layers=[Remembering()])) as host:
        client = InProcessClient(host.handler)
        assert (await client.call("quick")).text == "quick"
        calls[0].stop(CancelReason.DISCONNECT)
        assert holdings(host) == {}
        await client.close()


async def test_shutdown_waits_for_new_finalizers() -> None:
    """A shutdown also waits for finalizers of calls that end meanwhile."""
    release = asyncio.Event()
    left: list[str] = []

    class Slow:
        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *ending: object) -> None:
            release.set()
            await until(lambda: not host.handler.inflight)
            left.append("slow")

    class Late:
        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *ending: object) -> None:
            for _ in range(200):
                await asyncio.sleep(0)
            left.append("late")

    @tool
    async def quick(context: Context) -> None:
        await context.enter(Slow)

    @tool
    async def last(context: Context) -> None:
        await context.enter(Late)
        await release.wait()

    async with ServerHost(container_of(quick, last)) as host:
        client = InProcessClient(host.handler)
        running = asyncio.ensure_future(client.call("last"))
        await until(lambda: host.handler.inflight)
        await client.call("quick")
    assert left == ["slow", "late"]
    await running
    await client.close()
