"""Callers that leave a shared run at unusual times, and runs that do not stop."""

import asyncio
import contextlib
import threading

import pytest

from axolotl_core import Context, ToolError
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Overloaded
from axolotl_core.layers import Call, Leftover
from axolotl_core.policies.tool_rules import ClaimResult, Idempotency
from axolotl_server import InProcessClient, ServerHost
from axolotl_server.stores.results import MemoryResultStore
from tests.support.counting_tools import Order, Pay, Till, text
from tests.support.peers.memory_peer import Peer
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import container_of


class SlowStore(MemoryResultStore):
    """A store that is slow to save a result."""

    def __init__(self) -> None:
        super().__init__(100, 10_000)
        self.keeping, self.go_on = asyncio.Event(), asyncio.Event()

    async def keep(self, key: str, holder: str, record: bytes, seconds: float) -> bool:
        self.keeping.set()
        await self.go_on.wait()
        return await super().keep(key, holder, record, seconds)


async def test_a_stop_while_the_result_is_stored() -> None:
    """A finished result is stored even if the last caller leaves meanwhile, and new callers wait for it."""
    store = SlowStore()
    till = Till(store=store)
    first = till.begin()
    await till.end("paid")
    await store.keeping.wait()
    first.stop()
    assert isinstance(await first.outcome(), asyncio.CancelledError)
    second = till.begin()
    await asyncio.sleep(0)
    store.go_on.set()
    assert text(await second.outcome()) == "k paid"
    assert till.tool.runs["k"] == 1


class SlowToRelease(MemoryResultStore):
    """A store that is slow to release a key."""

    def __init__(self) -> None:
        super().__init__(100, 10_000)
        self.go_on = asyncio.Event()

    async def release(self, key: str, holder: str) -> None:
        await self.go_on.wait()
        await super().release(key, holder)


async def test_a_failure_goes_only_to_waiting_callers() -> None:
    """A caller that comes after a failure waits until the key is released, and runs."""
    store = SlowToRelease()
    till = Till(store=store)
    first = till.begin()
    await till.end(ToolError("no"))
    assert isinstance(await first.outcome(), ToolError)
    second = till.begin()
    await asyncio.sleep(0)
    assert not second.task.done()
    store.go_on.set()
    await till.end("paid")
    assert await second.outcome() == "k paid"


class Silent(MemoryResultStore):
    """A store that never answers."""

    async def claim(self, key: str, holder: str) -> ClaimResult:
        await asyncio.Event().wait()
        return "theirs"


async def test_a_store_that_never_answers() -> None:
    """A call waits for a store at most for the configured time."""
    till = Till(store=Silent(1, 1), store_timeout_seconds=0.001)
    outcome = await till.begin().outcome()
    assert isinstance(outcome, Overloaded)
    assert outcome.meta == {"axolotl/retryAfterMs": 1000, "axolotl/reason": "results_unavailable"}


class Swallowing(MemoryResultStore):
    """A store that ignores cancellation, like some clients."""

    def __init__(self) -> None:
        super().__init__(100, 10_000)
        self.claiming = asyncio.Event()

    async def claim(self, key: str, holder: str) -> ClaimResult:
        self.claiming.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return await super().claim(key, holder)


async def test_a_cancellation_that_gets_lost() -> None:
    """A run without callers does not start, even if the store ignored its cancellation, and its key is released."""
    store = Swallowing()
    till = Till(store=store)
    call = till.begin()
    await store.claiming.wait()
    call.stop()
    assert isinstance(await call.outcome(), asyncio.CancelledError)
    assert till.tool.runs["k"] == 0
    await until(lambda: not store._holders)


class Complaining(Pay):
    """Stores failures, and turns a cancellation into one."""

    idempotency = Idempotency(key="key", store_failures=True)

    async def execute(self, arguments: Order, context: Context) -> str:
        try:
            return await super().execute(arguments, context)
        except asyncio.CancelledError:
            raise ToolError("interrupted") from None


async def test_a_failure_caused_by_cancellation_is_not_stored() -> None:
    """A failure caused by a cancellation is not stored."""
    till = Till(Complaining())
    first = till.begin()
    await till.running()
    first.stop(CancelReason.TIMEOUT)
    await first.outcome()
    second = till.begin()
    await till.end("paid")
    assert await second.outcome() == "k paid"


class Shielded(Pay):
    """Finishes its work even if it is canceled."""

    async def execute(self, arguments: Order, context: Context) -> str:
        work = asyncio.ensure_future(super().execute(arguments, context))
        while not work.done():
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                continue
        return work.result()


async def test_work_that_cannot_be_stopped() -> None:
    """A new caller waits for a run that ignores its cancellation and gets its result."""
    till = Till(Shielded())
    first = till.begin()
    await till.running()
    first.stop()
    second = till.begin()
    await asyncio.sleep(0)
    assert not first.task.done()
    assert not second.task.done()
    await till.end("paid")
    assert isinstance(await first.outcome(), asyncio.CancelledError | str)
    assert text(await second.outcome()) == "k paid"
    assert till.tool.runs["k"] == 1


async def test_a_call_that_is_abandoned() -> None:
    """Inner layers are notified of an abandoned call too, if its run does not stop."""
    till, told = Till(Shielded()), []
    call = till.begin()
    await till.running()
    till.tool.contexts[0].when_abandoned(lambda: told.append("told"))  # type: ignore[attr-defined]
    call.stop(CancelReason.TIMEOUT)
    await asyncio.sleep(0)
    call.call.abandon()
    assert told == ["told"]
    await till.end("paid")
    await call.outcome()


async def test_a_run_that_is_finished_is_not_abandoned() -> None:
    """Inner layers see the end of work that is finished without its caller; they are told if it does not stop later."""
    till, told = Till(Shielded()), []
    call = till.begin(seconds=0.05)
    await till.running()
    till.tool.contexts[0].when_abandoned(lambda: told.append("told"))  # type: ignore[attr-defined]
    call.stop()
    await asyncio.sleep(0)
    call.call.abandon()
    assert told == []
    await until(lambda: till.tool.contexts[0].cancelled)
    assert told == ["told"]
    await till.end("paid")
    await call.outcome()


class Threaded(Pay):
    """Works in a thread that ignores cancellation."""

    execution = "thread"
    suspends = False
    timeout_seconds = 0.05

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.at_once = 0
        self.most = 0

    async def execute(self, arguments: Order, context: Context) -> str:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        self.runs[arguments.key] += 1
        self.entered.release()
        self.go_on.wait(PATIENCE_SECONDS)
        self.at_once -= 1
        return "done"


async def test_an_abandoned_thread_is_not_started_again() -> None:
    """While an abandoned thread runs, its work is not started again."""
    pay = Threaded()
    async with ServerHost(container_of(pay)) as host:
        client = InProcessClient(host.handler)
        late = [await client.call("pay", {"key": "k"}) for _ in range(2)]
        assert [outcome.meta["axolotl/reason"] for outcome in late] == ["timeout", "timeout"]
        assert pay.runs["k"] == 1
        pay.go_on.set()
        await until(lambda: pay.at_once == 0)
        assert (await client.call("pay", {"key": "k"})).text == "done"
        assert (pay.runs["k"], pay.most) == (2, 1)
        await client.close()


async def test_work_that_is_finished_counts_as_running() -> None:
    """While the work of a cancelled call is finished, it takes its place on the server; its result is stored."""
    pay = Pay()
    async with ServerHost(container_of(pay), flags={"limits": {"max_inflight": 1}}) as host:
        calls, peer = host.handler.inflight, Peer(host)
        peer.call("pay", {"key": "k"}, id=1)
        await until(lambda: "k" in pay.ends)
        peer.cancel(1)
        await until(lambda: len(calls.zombies) == 1)
        peer.call("pay", {"key": "k"}, id=2)
        assert (await peer.receive())["result"]["_meta"]["axolotl/reason"] == "overloaded"
        pay.ends["k"].set_result("paid")
        await until(lambda: not calls.zombies)
        peer.call("pay", {"key": "k"}, id=3)
        replayed = (await peer.receive())["result"]
        assert (replayed["content"][0]["text"], replayed["_meta"]["axolotl/replayed"]) == ("k paid", True)
        await peer.close()
        assert pay.runs["k"] == 1


async def test_the_end_of_a_server_stops_runs() -> None:
    """The shutdown of a server stops work that a caller waits for, which is not stored."""
    pay = Pay()
    async with ServerHost(container_of(pay)) as host:
        peer = Peer(host)
        peer.call("pay", {"key": "k"}, id=1)
        await until(lambda: "k" in pay.ends)
        host.handler.inflight.stop_all(CancelReason.SHUTDOWN)
        assert (await peer.receive())["result"]["_meta"]["axolotl/reason"] == "shutdown"
        assert (pay.cancelled["k"], pay.contexts[0].cancel_reason) == (1, CancelReason.SHUTDOWN)
        await peer.close()


async def test_a_server_that_waits_for_nothing() -> None:
    """When the task of a call that has left is cancelled too, its run is stopped."""
    till = Till()
    call = till.begin()
    await till.running()
    call.stop()
    await asyncio.sleep(0)
    call.task.cancel()
    assert isinstance(await call.outcome(), asyncio.CancelledError)
    await until(lambda: till.tool.cancelled["k"] == 1)
    assert till.tool.contexts[0].cancel_reason is CancelReason.SHUTDOWN


@pytest.mark.parametrize("abandoned", [False, True])
async def test_code_that_outlives_its_run(abandoned: bool) -> None:
    """It is the leftover of the call that began the run, too, which outer layers wait for."""
    till, left, ended = Till(), Leftover(1), []

    async def outlived(call: Call) -> None:
        call.leftover = left
        await asyncio.Event().wait()

    till.invoke = till.layer.wrap(till.spec, outlived)
    first = till.begin()
    for _ in range(10):
        await asyncio.sleep(0)
    if abandoned:
        first.call.leftover = Leftover(1)
    first.stop(CancelReason.TIMEOUT)
    assert isinstance(await first.outcome(), asyncio.CancelledError)
    first.call.when_code_ended(lambda: ended.append("ended"))
    assert ended == []
    left.end()
    if abandoned:
        assert ended == []
        first.call.leftover.end()  # type: ignore[union-attr]
    assert ended == ["ended"]
