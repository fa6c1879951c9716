"""Retries of temporary failures."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core import Context, ITool, NoArguments, ToolError
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InputRequired
from axolotl_core.features.feature import Execution
from axolotl_core.policies.tool_rules import Retry
from axolotl_server import connect
from axolotl_server.layers.retry import RetryLayer
from tests.support.peers.layer_calls import HandCall, spec_of
from tests.support.tools import Echo, container_of


class Flaky(ITool[NoArguments, str]):
    """Raises the given exceptions in order, and then succeeds."""

    name = "flaky"
    retry: Retry | None = Retry(attempts=4, base_seconds=1.0, max_seconds=3.0)

    def __init__(self, errors: Sequence[BaseException]) -> None:
        self.errors = list(errors)
        self.runs = 0

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


class Pauses:
    """Always uses the longest pause, records it, and takes no time."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def draw(self, least: float, most: float) -> float:
        assert least == 0
        return most

    async def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)

    @property
    def layer(self) -> RetryLayer:
        return RetryLayer(self.draw, self.sleep)


def run(tool: Flaky, layer: RetryLayer, *, seconds: float | None = None) -> HandCall:
    spec = spec_of(tool)
    return HandCall(layer.wrap(spec, lambda call: tool.execute(call.arguments, call)), spec, seconds=seconds)


async def test_the_successful_run_is_returned() -> None:
    """The caller gets the result of the successful run, and pauses grow up to the maximum."""
    tool, pauses = Flaky([ConnectionError(), TimeoutError(), OSError()]), Pauses()
    assert await run(tool, pauses.layer).outcome() == "done"
    assert (tool.runs, pauses.taken) == (4, [1.0, 2.0, 3.0])


async def test_the_last_error_is_returned() -> None:
    """After the last attempt, the caller gets its error."""
    last = ConnectionError("last")
    tool = Flaky([ConnectionError(), ConnectionError(), ConnectionError(), last])
    assert await run(tool, Pauses().layer).outcome() is last
    assert tool.runs == 4


@pytest.mark.parametrize(
    "error",
    [
        ToolError("no such order"),
        ValueError("a bug"),
        FileNotFoundError(),
        InputRequired(),
        asyncio.CancelledError(),
    ],
    ids=repr,
)
async def test_permanent_errors_are_not_retried(error: BaseException) -> None:
    """Tool errors, bugs, questions and cancellations are not retried."""
    tool, pauses = Flaky([error]), Pauses()
    assert isinstance(await run(tool, pauses.layer).outcome(), type(error))
    assert (tool.runs, pauses.taken) == (1, [])


async def test_the_deadline_is_not_slept_through() -> None:
    """A pause that would end after the deadline is skipped, and the error is returned."""
    tool, pauses = Flaky([ConnectionError("first"), ConnectionError("second")]), Pauses()
    outcome = await run(tool, pauses.layer, seconds=1.5).outcome()
    assert str(outcome) == "second"
    assert (tool.runs, pauses.taken) == (2, [1.0])


async def test_a_stop_during_a_pause() -> None:
    """A call that is stopped during a pause ends without another run."""
    tool, pausing = Flaky([ConnectionError()]), asyncio.Event()

    async def sleep(seconds: float) -> None:
        pausing.set()
        await asyncio.Event().wait()

    call = run(tool, RetryLayer(sleep=sleep))
    await pausing.wait()
    call.stop(CancelReason.TIMEOUT)
    assert isinstance(await call.outcome(), asyncio.CancelledError)
    assert tool.runs == 1


async def test_code_that_turns_its_cancellation_into_an_error() -> None:
    """A stopped call is not retried, whatever its code raises."""
    started = asyncio.Event()

    class Stubborn(Flaky):
        async def execute(self, arguments: NoArguments, context: Context) -> str:
            self.runs += 1
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ConnectionError from None
            return "never"

    tool = Stubborn([])
    call = run(tool, Pauses().layer)
    await started.wait()
    call.stop()
    assert isinstance(await call.outcome(), ConnectionError)
    assert tool.runs == 1


@given(errors=st.lists(st.sampled_from([ConnectionError, ToolError, KeyError]), max_size=6), attempts=st.integers(2, 5))
def test_runs_are_counted_right(errors: list[Any], attempts: int) -> None:
    """Code runs until it succeeds, fails permanently, or reaches the number of attempts."""
    tool = Flaky([error("x") for error in errors])
    tool.retry = Retry(attempts=attempts)
    outcome = asyncio.run(_outcome(tool))
    expected = 0
    for expected in range(1, attempts + 1):
        if expected > len(errors) or errors[expected - 1] is not ConnectionError:
            break
    assert tool.runs == expected
    assert (outcome == "done") is (expected > len(errors))


async def _outcome(tool: Flaky) -> Any:
    return await run(tool, Pauses().layer).outcome()


async def test_in_a_server() -> None:
    """Retries have random pauses, in threads and on the loop."""
    places: tuple[Execution, ...] = ("loop", "thread")
    for execution in places:
        tool = Flaky([ConnectionError(), TimeoutError()])
        tool.retry = Retry(base_seconds=0.0001)
        tool.execution = execution
        async with connect(container_of(tool)) as client:
            assert (await client.call("flaky")).text == "done"
        assert tool.runs == 3


async def innermost(call: Any) -> Any:
    return None


def test_other_tools_are_not_wrapped() -> None:
    """A tool without retries is not wrapped."""
    assert RetryLayer().wrap(spec_of(Echo()), innermost) is innermost
