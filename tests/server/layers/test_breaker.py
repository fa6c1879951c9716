"""Circuit breakers for failing upstreams."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from axolotl_core import Context, ITool, NoArguments, ToolError
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Declined, Forbidden, InputRequired, MissingCapability, Overloaded
from axolotl_core.policies.tool_rules import Breaker, BreakerState
from axolotl_server import connect
from axolotl_server.layers.breaker import BreakerLayer
from tests.support.peers.layer_calls import HandCall, spec_of
from tests.support.tools import Echo, container_of

RULE = Breaker(failures=2, share=0.5, window_seconds=10.0, open_seconds=5.0)


class Upstream(ITool[NoArguments, str]):
    """An upstream with scripted outcomes."""

    name = "upstream"
    breaker: Breaker | None = RULE

    def __init__(self) -> None:
        self.next: BaseException | None = None
        self.runs = 0
        self.gate: asyncio.Event | None = None
        self.entered = asyncio.Event()

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        self.runs += 1
        planned, gate = self.next, self.gate
        self.entered.set()
        if gate is not None:
            await gate.wait()
        if planned is not None:
            raise planned
        return "fine"


class Guarded:
    """An upstream behind a breaker, with a manual clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.tool = Upstream()
        self.layer = BreakerLayer(lambda: self.now)
        self.spec = spec_of(self.tool)
        self.invoke = self.layer.wrap(self.spec, lambda call: self.tool.execute(call.arguments, call))

    def state(self) -> BreakerState:
        return self.layer.circuits["upstream"].state

    def begin(self, error: BaseException | None = None) -> HandCall:
        self.tool.next = error
        return HandCall(self.invoke, self.spec)

    async def call(self, error: BaseException | None = None) -> Any:
        return await self.begin(error).outcome()

    async def held(self, error: BaseException | None = None) -> tuple[HandCall, Callable[[], None]]:
        """Start a call that waits until it is released."""
        gate = self.tool.gate = asyncio.Event()
        self.tool.entered.clear()
        call = self.begin(error)
        await self.tool.entered.wait()
        self.tool.gate = None
        return call, gate.set

    async def open(self) -> None:
        for _ in range(RULE.failures):
            await self.call(ConnectionError())
        assert self.state() == "open"


async def test_too_many_failures_open_it() -> None:
    """After too many failures, calls are rejected with a retry hint that decreases over time."""
    guarded = Guarded()
    await guarded.open()
    guarded.now += 2
    refused = await guarded.call()
    assert isinstance(refused, Overloaded)
    assert refused.meta == {"axolotl/retryAfterMs": 3000, "axolotl/reason": "circuit_open"}
    assert guarded.tool.runs == RULE.failures


async def test_one_call_tries() -> None:
    """After the pause one probe call runs and the others are rejected; if it succeeds, all calls run."""
    guarded = Guarded()
    await guarded.open()
    guarded.now += RULE.open_seconds
    assert guarded.state() == "half_open"
    probe, go_on = await guarded.held()
    assert isinstance(await guarded.call(), Overloaded)
    go_on()
    assert await probe.outcome() == "fine"
    assert guarded.state() == "closed"
    assert [await guarded.call() for _ in range(3)] == ["fine"] * 3


async def test_a_new_start() -> None:
    """After closing, earlier failures are forgotten."""
    guarded = Guarded()
    await guarded.open()
    guarded.now += RULE.open_seconds
    assert await guarded.call() == "fine"
    await guarded.call(ConnectionError())
    assert guarded.state() == "closed"


async def test_a_try_that_fails() -> None:
    """A failed probe call opens the breaker for another pause."""
    guarded = Guarded()
    await guarded.open()
    guarded.now += RULE.open_seconds
    await guarded.call(ConnectionError())
    assert guarded.state() == "open"
    assert guarded.layer.circuits["upstream"].opened == 2
    guarded.now += RULE.open_seconds - 1
    assert (await guarded.call()).retry_after_seconds == 1


@pytest.mark.parametrize(
    "error",
    [ToolError("no such order"), Forbidden("no"), InputRequired(), Declined("decline"), MissingCapability("", {})],
)
async def test_errors_that_are_not_failures(error: BaseException) -> None:
    """Tool errors, rejections and questions do not count as failures."""
    guarded = Guarded()
    for _ in range(20):
        assert await guarded.call(error) is error
    assert guarded.state() == "closed"


@pytest.mark.parametrize(
    ("error", "state"),
    [(ToolError("no such order"), "closed"), (Forbidden("no"), "half_open"), (InputRequired(), "half_open")],
)
async def test_outcomes_of_a_probe(error: BaseException, state: BreakerState) -> None:
    """A tool error closes the breaker; a rejection or a question lets another call probe."""
    guarded = Guarded()
    await guarded.open()
    guarded.now += RULE.open_seconds
    assert await guarded.call(error) is error
    assert guarded.state() == state
    assert await guarded.call() == "fine"


@pytest.mark.parametrize(
    ("reason", "state"),
    [(CancelReason.TIMEOUT, "open"), (CancelReason.CLIENT, "closed"), (CancelReason.SHUTDOWN, "closed")],
)
async def test_deadlines_count_and_cancellations_do_not(reason: CancelReason, state: BreakerState) -> None:
    """Timeouts count as failures, cancellations do not."""
    guarded = Guarded()
    for _ in range(RULE.failures):
        call, _ = await guarded.held()
        call.stop(reason)
        assert isinstance(await call.outcome(), asyncio.CancelledError)
    assert guarded.state() == state


async def test_an_output_after_the_deadline() -> None:
    """A result after the deadline counts as a failure."""
    guarded = Guarded()
    for _ in range(RULE.failures):
        call, go_on = await guarded.held()
        call.call.cancellation.cancel(CancelReason.TIMEOUT)
        go_on()
        assert await call.outcome() == "fine"
    assert guarded.state() == "open"


async def test_a_try_that_is_cancelled() -> None:
    """A canceled probe call lets another one probe."""
    guarded = Guarded()
    await guarded.open()
    guarded.now += RULE.open_seconds
    probe, _ = await guarded.held()
    probe.stop()
    await probe.outcome()
    assert await guarded.call() == "fine"
    assert guarded.state() == "closed"


async def test_a_try_that_never_ends() -> None:
    """An abandoned probe call counts once, when its caller is answered."""
    guarded = Guarded()
    await guarded.open()
    guarded.now += RULE.open_seconds
    probe, go_on = await guarded.held()
    probe.call.cancellation.cancel(CancelReason.TIMEOUT)
    probe.call.abandon()
    assert guarded.state() == "open"
    guarded.now += RULE.open_seconds
    go_on()
    assert await probe.outcome() == "fine"
    assert guarded.state() == "half_open"


@pytest.mark.parametrize("error", [None, ConnectionError()])
async def test_earlier_calls_do_not_change_the_state(error: BaseException | None) -> None:
    """A call that started before the breaker opened does not change its state."""
    guarded = Guarded()
    early, go_on = await guarded.held(error)
    await guarded.open()
    go_on()
    await early.outcome()
    assert guarded.state() == "open"
    guarded.now += RULE.open_seconds
    assert guarded.state() == "half_open"
    assert await guarded.call() == "fine"


async def test_failures_far_apart() -> None:
    """Failures outside of the window do not count."""
    guarded = Guarded()
    for _ in range(10):
        await guarded.call(ConnectionError())
        guarded.now += RULE.window_seconds
    assert guarded.state() == "closed"


async def test_failures_among_many_successes() -> None:
    """The breaker opens only if failures are a large enough share of all calls."""
    guarded = Guarded()
    for _ in range(4):
        await guarded.call()
    for _ in range(3):
        await guarded.call(ConnectionError())
    assert guarded.state() == "closed"
    await guarded.call(ConnectionError())
    assert guarded.state() == "open"


async def test_a_leaked_cancellation_is_a_failure() -> None:
    """A cancellation that nobody requested counts as a failure."""
    guarded = Guarded()
    for _ in range(RULE.failures):
        assert isinstance(await guarded.call(asyncio.CancelledError()), asyncio.CancelledError)
    assert guarded.state() == "open"


async def test_in_a_server() -> None:
    """The model gets an error with a retry hint, and other tools are not affected."""
    tool = Upstream()
    tool.next = ConnectionError("swordfish")
    async with connect(container_of(tool, Echo())) as client:
        for _ in range(RULE.failures):
            assert (await client.call("upstream")).is_error
        refused = await client.call("upstream")
        assert refused.is_error
        assert refused.meta["axolotl/reason"] == "circuit_open"
        assert 0 < refused.meta["axolotl/retryAfterMs"] <= 5000
        assert (await client.call("echo", {"text": "x"})).text == "x"
    assert tool.runs == RULE.failures


async def innermost(call: Any) -> Any:
    return None


def test_other_tools_are_not_wrapped() -> None:
    """A tool without a breaker is not wrapped."""
    assert BreakerLayer().wrap(spec_of(Echo()), innermost) is innermost
