"""Concurrent calls with the same key share one run."""

import asyncio
from time import monotonic
from typing import Any

import pytest

from axolotl_core import Context, ToolError
from axolotl_core.calls.cancellation import CancelReason
from axolotl_server.layers.concurrency import ConcurrencyLayer
from tests.support.core.callers import Caller
from tests.support.counting_tools import Order, Pay, Till, text
from tests.support.peers.layer_calls import spec_of


@pytest.mark.parametrize("said", ["paid", ToolError("no"), ValueError("a bug")], ids=repr)
async def test_everybody_gets_the_same(said: Any) -> None:
    """All concurrent callers get the same result or error."""
    till = Till()
    calls = [till.begin() for _ in range(5)]
    await till.running()
    calls += [till.begin() for _ in range(5)]
    await asyncio.sleep(0)
    await till.end(said)
    outcomes = {id(await call.outcome()) for call in calls}
    assert (len(outcomes), till.tool.runs["k"]) == (1, 1)


async def test_the_first_may_leave() -> None:
    """The run continues if the first caller leaves, and that caller's call ends with it."""
    till = Till()
    first = till.begin()
    await till.running()
    second = till.begin()
    await asyncio.sleep(0)
    first.stop()
    await asyncio.sleep(0)
    assert not first.task.done()
    assert not till.tool.contexts[0].cancelled
    await till.end("paid")
    assert await second.outcome() == "k paid"
    assert isinstance(await first.outcome(), asyncio.CancelledError)
    assert (till.tool.runs["k"], till.tool.cancelled["k"]) == (1, 0)


async def test_another_may_leave() -> None:
    """A joined caller that leaves affects only its own call."""
    till = Till()
    first = till.begin()
    await till.running()
    second = till.begin()
    await asyncio.sleep(0)
    second.stop()
    assert isinstance(await second.outcome(), asyncio.CancelledError)
    await till.end("paid")
    assert await first.outcome() == "k paid"


@pytest.mark.parametrize("reason", [CancelReason.CLIENT, CancelReason.DISCONNECT])
async def test_work_is_finished_for_nobody(reason: CancelReason) -> None:
    """Work that has begun is finished and stored, although all callers have left; a later call gets its result."""
    till = Till()
    first, second = till.begin(), till.begin()
    await till.running()
    first.stop(reason)
    second.stop(reason)
    assert isinstance(await second.outcome(), asyncio.CancelledError)
    await till.end("paid")
    assert isinstance(await first.outcome(), asyncio.CancelledError)
    assert text(await till.begin().outcome()) == "k paid"
    assert (till.tool.runs["k"], till.tool.cancelled["k"]) == (1, 0)


@pytest.mark.parametrize(
    "reason", [CancelReason.OPERATOR, CancelReason.TIMEOUT, CancelReason.SHUTDOWN, CancelReason.LOST]
)
async def test_the_server_stops_a_run(reason: CancelReason) -> None:
    """When the server stops the first call, its run is stopped for the same reason, and calls that wait begin again."""
    till = Till()
    first, second = till.begin(), till.begin()
    await till.running()
    first.stop(reason)
    assert isinstance(await first.outcome(), asyncio.CancelledError)
    assert till.tool.cancelled["k"] == 1
    assert till.tool.contexts[0].cancel_reason is reason
    await till.end("paid")
    assert await second.outcome() == "k paid"
    assert till.tool.runs["k"] == 2


async def test_a_stop_before_the_work_began() -> None:
    """A call that is stopped at its start leaves nothing behind."""
    till = Till()
    for turns in range(6):
        call = till.begin(seconds=10)
        for _ in range(turns):
            await asyncio.sleep(0)
        call.stop(CancelReason.TIMEOUT)
        assert isinstance(await call.outcome(), asyncio.CancelledError)
        assert not till.layer.deadlines._timed
    last = till.begin()
    await till.end("paid")
    assert await last.outcome() == "k paid"


async def test_the_deadline_of_a_run() -> None:
    """The run has the deadline of the call that began it, and that call is stopped with it."""
    till = Till()
    first = till.begin(seconds=0.02)
    deadline = first.call.deadline
    await till.running()
    second = till.begin(seconds=60)
    assert first.call.deadline is None
    assert till.tool.contexts[0].deadline == pytest.approx(deadline, abs=0.01)
    assert isinstance(await first.outcome(), asyncio.CancelledError)
    assert first.call.cancel_reason is CancelReason.TIMEOUT
    assert till.tool.contexts[0].cancel_reason is CancelReason.TIMEOUT
    await till.end("paid")
    assert await second.outcome() == "k paid"


async def test_the_deadline_of_a_run_that_nobody_waits_for() -> None:
    """A run whose caller has left still has its deadline."""
    till = Till()
    first = till.begin(seconds=0.02)
    await till.running()
    first.stop()
    assert isinstance(await first.outcome(), asyncio.CancelledError)
    assert till.tool.contexts[0].cancel_reason is CancelReason.TIMEOUT
    assert first.call.cancel_reason is CancelReason.CLIENT


async def test_progress_goes_to_the_first_caller() -> None:
    """Progress and log messages go to the caller that began the run, and progress extends the deadline of the run."""
    till, callers = Till(), [Caller(), Caller()]
    calls = [till.begin(caller=caller, seconds=10) for caller in callers]

    def extend(call: Any) -> None:
        call.deadline = monotonic() + 100

    for call in calls:
        call.call.extend = extend
    await till.running()
    context = till.tool.contexts[0]
    context.report_progress(1, 2)
    context.log("info", "x")
    context.hang_up()
    assert [caller.progress for caller in callers] == [[(1, 2, None)], []]
    assert [caller.logged for caller in callers] == [[("info", "x", None)], []]
    assert [caller.hung_up for caller in callers] == [1, 0]
    assert context.remaining_seconds is not None
    assert context.remaining_seconds > 50
    await till.end("paid")
    for call in calls:
        await call.outcome()


class Scoping(Pay):
    """Uses a per-call resource."""

    async def execute(self, arguments: Order, context: Context) -> str:
        await context.enter(object)
        return await super().execute(arguments, context)


@pytest.mark.parametrize("reason", [None, CancelReason.CLIENT, CancelReason.TIMEOUT])
async def test_resources_of_a_run_are_finalized_once(reason: CancelReason | None) -> None:
    """Resources of a run are finalized once at its end, even if its caller has left before."""
    till = Till(Scoping())
    call = till.begin()
    await till.running()
    if reason is not None:
        call.stop(reason)
    await asyncio.sleep(0)
    assert till.finalised == []
    if reason is not CancelReason.TIMEOUT:
        await till.end("paid")
    await call.outcome()
    assert till.finalised == till.tool.contexts
    assert till.finalised[0].cancelled is (reason is CancelReason.TIMEOUT)


async def test_joined_calls_take_no_slot() -> None:
    """Joined calls do not count against the concurrency limit."""
    till = Till()
    spec = spec_of(till.tool, max_concurrency=1)
    limited = ConcurrencyLayer().wrap(spec, lambda call: till.tool.execute(call.arguments, call))
    till.invoke = till.layer.wrap(spec, limited)
    calls = [till.begin() for _ in range(4)]
    await till.end("paid")
    assert [await call.outcome() for call in calls] == ["k paid"] * 4
