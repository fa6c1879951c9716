"""Concurrent calls with the same key share one run."""

import asyncio
from time import monotonic
from typing import Any

import pytest

from axolotl_core import Context, ToolError
from axolotl_core.calls.cancellation import CancelReason
from axolotl_server.layers.concurrency import ConcurrencyLayer
from tests.support.core.callers import Caller
from tests.support.counting_tools import Order, Pay, Till
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
    """The run continues if the first caller leaves."""
    till = Till()
    first = till.begin()
    await till.running()
    second = till.begin()
    await asyncio.sleep(0)
    first.stop(CancelReason.TIMEOUT)
    assert isinstance(await first.outcome(), asyncio.CancelledError)
    assert not till.tool.contexts[0].cancelled
    await till.end("paid")
    assert await second.outcome() == "k paid"
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


@pytest.mark.parametrize("reason", list(CancelReason))
async def test_the_last_caller_stops_the_run(reason: CancelReason) -> None:
    """When the last caller leaves, the run is stopped with that caller's reason, and can be repeated."""
    till = Till()
    first, second = till.begin(), till.begin()
    await till.running()
    first.stop()
    await first.outcome()
    second.stop(reason)
    assert isinstance(await second.outcome(), asyncio.CancelledError)
    assert till.tool.cancelled["k"] == 1
    assert till.tool.contexts[0].cancel_reason is reason
    third = till.begin()
    await till.end("paid")
    assert await third.outcome() == "k paid"


async def test_a_stop_before_the_work_began() -> None:
    """A call that is stopped at its start leaves nothing behind."""
    till = Till()
    for turns in range(6):
        call = till.begin()
        for _ in range(turns):
            await asyncio.sleep(0)
        call.stop()
        assert isinstance(await call.outcome(), asyncio.CancelledError)
    last = till.begin()
    await till.end("paid")
    assert await last.outcome() == "k paid"


async def test_the_deadline_of_a_run() -> None:
    """The run has the latest deadline of its callers."""
    till = Till()
    first = till.begin(seconds=10)
    await till.running()
    context = till.tool.contexts[0]
    assert context.deadline == first.call.deadline
    second = till.begin(seconds=20)
    await asyncio.sleep(0)
    assert context.deadline == second.call.deadline
    second.stop()
    await second.outcome()
    assert context.deadline == first.call.deadline
    await till.end("paid")
    await first.outcome()


async def test_progress_goes_to_all_callers() -> None:
    """Progress and log messages go to all waiting callers, and progress extends all deadlines."""
    till, callers, moved = Till(), [Caller(), Caller()], []
    calls = [till.begin(caller=caller, seconds=10) for caller in callers]

    def extend(call: Any) -> None:
        moved.append(call)
        call.deadline = monotonic() + 100

    for call in calls:
        call.call.extend = extend
    await till.running()
    context = till.tool.contexts[0]
    context.report_progress(1, 2)
    context.log("info", "x")
    context.hang_up()
    assert [caller.progress for caller in callers] == [[(1, 2, None)]] * 2
    assert [caller.logged for caller in callers] == [[("info", "x", None)]] * 2
    assert [caller.hung_up for caller in callers] == [1, 1]
    assert moved == [call.call for call in calls]
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


@pytest.mark.parametrize("left", [0, 1, 2])
async def test_resources_of_a_run_are_finalized_once(left: int) -> None:
    """Resources of a run are finalized once at its end, even if callers have left before."""
    till = Till(Scoping())
    calls = [till.begin(), till.begin()]
    await till.running()
    for call in calls[:left]:
        assert till.finalised == []
        call.stop()
        await call.outcome()
    if left < len(calls):
        await till.end("paid")
    for call in calls:
        await call.outcome()
    assert till.finalised == till.tool.contexts
    assert till.finalised[0].cancelled is (left == 2)


async def test_joined_calls_take_no_slot() -> None:
    """Joined calls do not count against the concurrency limit."""
    till = Till()
    spec = spec_of(till.tool, max_concurrency=1)
    limited = ConcurrencyLayer().wrap(spec, lambda call: till.tool.execute(call.arguments, call))
    till.invoke = till.layer.wrap(spec, limited)
    calls = [till.begin() for _ in range(4)]
    await till.end("paid")
    assert [await call.outcome() for call in calls] == ["k paid"] * 4
