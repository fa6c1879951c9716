"""Code that is run again when what it raised may pass."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_core import CancelReason, ITool, NoArguments, ToolContext, ToolError
from axolotl_core.errors import InputRequired
from axolotl_core.policies.tool_rules import Retry
from axolotl_server import connect
from axolotl_server.layers.retry import RetryLayer
from tests.support.peers.layer_calls import HandCall, spec_of
from tests.support.tools import Echo, container_of


class Flaky(ITool[NoArguments, str]):
    """Raises what it was given, one after the other, and then works."""

    name = "flaky"
    retry: Retry | None = Retry(attempts=4, base_seconds=1.0, max_seconds=3.0)

    def __init__(self, errors: Sequence[BaseException]) -> None:
        self.errors = list(errors)
        self.runs = 0

    async def execute(self, arguments: NoArguments, context: ToolContext) -> str:
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


class Pauses:
    """Draws the longest pause there may be, notes it, and takes no time."""

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


async def test_what_passes_is_not_seen() -> None:
    """The caller gets the result of the run that worked, and the pauses grow up to the longest."""
    tool, pauses = Flaky([ConnectionError(), TimeoutError(), OSError()]), Pauses()
    assert await run(tool, pauses.layer).outcome() == "done"
    assert (tool.runs, pauses.taken) == (4, [1.0, 2.0, 3.0])


async def test_the_last_error_is_told() -> None:
    """After as many runs as the tool allows, the caller gets what the last one raised."""
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
async def test_what_does_not_pass_is_told_at_once(error: BaseException) -> None:
    """An answer, a bug, a question and a cancellation are not tried again."""
    tool, pauses = Flaky([error]), Pauses()
    assert isinstance(await run(tool, pauses.layer).outcome(), type(error))
    assert (tool.runs, pauses.taken) == (1, [])


async def test_the_deadline_is_not_slept_through() -> None:
    """A pause that would end after the deadline is not begun: the error is told while there is time to tell it."""
    tool, pauses = Flaky([ConnectionError("first"), ConnectionError("second")]), Pauses()
    outcome = await run(tool, pauses.layer, seconds=1.5).outcome()
    assert str(outcome) == "second"
    assert (tool.runs, pauses.taken) == (2, [1.0])


async def test_a_stop_during_a_pause() -> None:
    """A call that is stopped while it pauses ends, and its code does not run again."""
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
    """A call that was stopped is not tried again, whatever its code makes of it."""
    started = asyncio.Event()

    class Stubborn(Flaky):
        async def execute(self, arguments: NoArguments, context: ToolContext) -> str:
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
    """Code runs until it works, until it says no, or as often as it may; never more."""
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
    """A tool that says so is tried again with pauses of random length, in a thread as on the loop."""
    for execution in ("loop", "thread"):
        tool = Flaky([ConnectionError(), TimeoutError()])
        tool.retry = Retry(base_seconds=0.0001)
        settings = {"tools": {"flaky": {"execution": execution}}}
        async with connect(container_of(tool), settings=settings) as client:
            assert (await client.call("flaky")).text == "done"
        assert tool.runs == 3


async def innermost(call: Any) -> Any:
    return None


def test_who_wants_none_pays_nothing() -> None:
    """A tool without a rule is not wrapped."""
    assert RetryLayer().wrap(spec_of(Echo()), innermost) is innermost
