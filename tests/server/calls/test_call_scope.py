"""Per-call resources: created once per call and finalized after the reply."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from axolotl_core import Context, ITool, NoArguments, ToolError, tool
from axolotl_core.errors import ToolCancelled
from axolotl_server import ServerHost, connect
from tests.support.call_resources import Ledger, Plain, Waiting, failing, failing_plainly
from tests.support.peers.memory_peer import Peer
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import container_of


async def test_one_for_each_call() -> None:
    """A factory returns the same object within a call, and a new one in the next call."""
    ledger = Ledger()
    session = ledger.waiting("session")
    seen: list[Any] = []

    @tool
    async def work(context: Context) -> bool:
        one, other = await context.enter(session), await context.enter(session)
        seen.append(one)
        return one is other

    async with connect(container_of(work)) as client:
        assert [(await client.call("work")).structured for _ in range(2)] == [True, True]
    assert ledger.made == ["session", "session"]
    assert seen[0] is not seen[1]


async def test_concurrent_uses_share_one_object() -> None:
    """Concurrent uses of a factory within a call share one object."""
    ledger = Ledger()
    ready = asyncio.Event()

    class Slow(Waiting):
        async def __aenter__(self) -> Waiting:
            await ready.wait()
            return await super().__aenter__()

    def slow() -> Slow:
        return Slow(ledger, "slow")

    @tool
    async def work(context: Context) -> bool:
        entering = asyncio.gather(context.enter(slow), context.enter(slow))
        await asyncio.sleep(0)
        ready.set()
        one, other = await entering
        return one is other

    async with connect(container_of(work)) as client:
        assert (await client.call("work")).structured is True
    assert len(ledger.ended) == len(ledger.made)


async def test_finalised_after_the_answer() -> None:
    """The caller does not wait for finalizers, but a shutdown does."""
    answered = asyncio.Event()
    ledger = Ledger()

    class Late(Waiting):
        async def __aexit__(self, *reason: Any) -> None:
            await answered.wait()
            await super().__aexit__(*reason)

    @tool
    async def work(context: Context) -> str:
        await context.enter(lambda: Late(ledger, "late"))
        return "done"

    async with connect(container_of(work)) as client:
        assert (await client.call("work")).text == "done"
        assert ledger.ended == []
        answered.set()
    assert ledger.order == ["late"]


async def test_synchronous_context_managers_are_left_in_a_thread() -> None:
    """Synchronous context managers are left in a thread, so they do not block the loop."""
    ledger = Ledger()

    @tool
    async def work(context: Context) -> None:
        await context.enter(ledger.plain("plain"))

    async with connect(container_of(work)) as client:
        await client.call("work")
    assert ledger.order == ["plain"]
    assert ledger.threads != [threading.get_ident()]


async def test_the_last_made_is_the_first_to_end() -> None:
    """Resources are finalized in reverse order."""
    ledger = Ledger()
    kinds: list[Callable[[str], Any]] = [ledger.waiting, ledger.plain, ledger.waiting, ledger.plain]
    factories = [kind(f"{number}") for number, kind in enumerate(kinds)]

    @tool
    async def work(context: Context) -> None:
        for factory in factories:
            await context.enter(factory)

    async with connect(container_of(work)) as client:
        await client.call("work")
    assert ledger.order == ["3", "2", "1", "0"]


@pytest.mark.parametrize("kind", ["waiting", "plain"])
@pytest.mark.parametrize("failure", [None, ToolError("told"), ValueError("a bug")])
async def test_a_unit_of_work_gets_the_outcome(kind: str, failure: Exception | None) -> None:
    """A unit of work is committed or rolled back depending on the outcome."""
    ledger = Ledger()
    factory = getattr(ledger, kind)("unit")

    @tool
    async def work(context: Context) -> None:
        await context.enter(factory)
        if failure is not None:
            raise failure

    async with connect(container_of(work)) as client:
        await client.call("work")
    assert ledger.ended == [("unit", failure)]


async def test_an_output_that_cannot_be_sent_is_a_failure() -> None:
    """If the result cannot be sent, the unit of work is rolled back."""
    ledger = Ledger()
    factory = ledger.waiting("unit")

    @tool(max_result_bytes=100)
    async def work(context: Context) -> str:
        await context.enter(factory)
        return "x" * 1000

    async with connect(container_of(work)) as client:
        assert (await client.call("work")).is_error
    [(_, error)] = ledger.ended
    assert isinstance(error, ToolError)


class Swallowing(ITool[NoArguments, str]):
    """Enters a resource and ignores cancellation until it is released."""

    name = "swallowing"

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.late: list[BaseException] = []

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        await context.enter(self.factory)
        self.started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await self.release.wait()
        await self.release.wait()
        try:
            await context.enter(lambda: "something new")
        except ToolCancelled as error:
            self.late.append(error)
        return "never read"


@pytest.mark.parametrize("reason", ["timeout", "client", "shutdown"])
@pytest.mark.parametrize("kind", ["waiting", "plain"])
async def test_abandonment_finalises_once(kind: str, reason: str) -> None:
    """Resources of an abandoned call are finalized at its reply, and its code cannot create new ones."""
    ledger = Ledger()
    stuck = Swallowing(getattr(ledger, kind)("unit"))
    stuck.timeout_seconds = 0.02 if reason == "timeout" else 30
    async with ServerHost(container_of(stuck)) as host:
        peer = Peer(host)
        peer.call("swallowing", id=1)
        await stuck.started.wait()
        if reason == "client":
            peer.cancel(1)
        await until(lambda: not host.handler.inflight) if reason != "shutdown" else await peer.close(0)
        await until(lambda: ledger.ended)
        assert not stuck.late
        stuck.release.set()
        await until(lambda: stuck.late)
        await until(lambda: len(host.handler.inflight.zombies) == 0)
        await peer.close()
    [(name, error)] = ledger.ended
    assert name == "unit"
    assert isinstance(error, ToolCancelled)


async def test_a_resource_that_outlasts_its_call_is_finalized() -> None:
    """A resource whose creation outlasts its call is finalized as soon as it exists."""
    ledger = Ledger()
    made, release = asyncio.Event(), asyncio.Event()

    class Stubborn(Waiting):
        async def __aenter__(self) -> Waiting:
            made.set()
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
            await release.wait()
            return await super().__aenter__()

    @tool(timeout_seconds=0.02)
    async def work(context: Context) -> None:
        await context.enter(lambda: Stubborn(ledger, "half"))

    async with ServerHost(container_of(work)) as host:
        peer = Peer(host)
        peer.call("work")
        await peer.receive()
        release.set()
        await until(lambda: ledger.order == ["half"])
        await peer.close()
    assert ledger.made == ["half"]


async def test_an_abandoned_thread_cannot_open_resources() -> None:
    """Resources of an abandoned thread are finalized at the reply, and it cannot open new ones."""
    ledger = Ledger()
    go_on, ended = threading.Event(), threading.Event()
    refused: list[BaseException] = []

    @tool(timeout_seconds=0.05)
    def work(context: Context) -> None:
        context.open(ledger.plain("first"))
        go_on.wait(PATIENCE_SECONDS)
        try:
            context.open(ledger.plain("second"))
        except ToolCancelled as error:
            refused.append(error)
        ended.set()

    async with connect(container_of(work)) as client:
        assert (await client.call("work")).is_error
        await until(lambda: ledger.order == ["first"])
        go_on.set()
        assert await asyncio.to_thread(ended.wait, PATIENCE_SECONDS)
    assert len(refused) == 1
    assert ledger.made == ledger.order == ["first"]


async def test_a_thread_that_opens_too_late_closes_its_resource() -> None:
    """A resource that a thread opens too late is left by the thread itself."""
    ledger = Ledger()
    entered, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    class Slow(Plain):
        def __enter__(self) -> Plain:
            entered.set()
            go_on.wait(PATIENCE_SECONDS)
            return super().__enter__()

    @tool(timeout_seconds=0.05)
    def work(context: Context) -> None:
        try:
            context.open(lambda: Slow(ledger, "slow"))
        finally:
            ended.set()

    async with connect(container_of(work)) as client:
        assert (await client.call("work")).is_error
        go_on.set()
        assert await asyncio.to_thread(ended.wait, PATIENCE_SECONDS)
    assert ledger.order == ["slow"]


async def test_a_failing_end_is_logged_only(caplog: pytest.LogCaptureFixture) -> None:
    """A failing finalizer is logged and affects neither the reply nor other resources."""
    ledger = Ledger()

    @tool
    async def work(context: Context) -> str:
        for factory in (ledger.waiting("first"), failing, failing_plainly, ledger.plain("last")):
            await context.enter(factory)
        return "done"

    async with connect(container_of(work)) as client:
        assert (await client.call("work")).text == "done"
    assert ledger.ended == [("last", None), ("first", None)]
    assert "cannot be left" in caplog.text
    assert "cannot be left plainly" in caplog.text


async def test_shutdown_waits_for_finalizers() -> None:
    """On shutdown, per-call resources are finalized before those of the container."""
    ledger = Ledger()
    ended = asyncio.Event()

    class Slow(Waiting):
        async def __aexit__(self, *reason: Any) -> None:
            await asyncio.to_thread(threading.Event().wait, 0.05)
            ledger.end(self.name, None)
            ended.set()

    @tool
    async def work(context: Context) -> None:
        await context.enter(lambda: Slow(ledger, "slow"))

    async with connect(container_of(work)) as client:
        await client.call("work")
    assert ended.is_set()
