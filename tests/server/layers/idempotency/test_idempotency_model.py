"""Idempotency compared with a simple model, and under races."""

import asyncio
import json
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from axolotl_core import Context, ToolError
from axolotl_core.calls.cancellation import CancelReason
from axolotl_server import ServerHost
from tests.support.counting_tools import Order, Pay, Till, text
from tests.support.peers.layer_calls import HandCall
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.peers.wire import call, message
from tests.support.servers.serving import PATIENCE_SECONDS, until
from tests.support.tools import container_of

pytestmark = pytest.mark.slow

ValueT = TypeVar("ValueT")

KEYS = st.sampled_from(["a", "b"])
SEED = 20260728


class OnceMachine(RuleBasedStateMachine):
    """Random calls, ends and times; the model knows the expected result for each key."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.till = self.run(self._till())
        self.waiting: dict[str, list[HandCall]] = {"a": [], "b": []}
        """Those of a running key; the first one began the run, unless it is among those that have left."""
        self.left: dict[str, list[HandCall]] = {"a": [], "b": []}
        """The callers that have left a run that is being finished: that which began it."""
        self.stored: dict[str, tuple[str, float]] = {}
        self.runs = {"a": 0, "b": 0}
        self.ended = 0

    async def _till(self) -> Till:
        return Till()

    def run(self, doing: Coroutine[Any, Any, ValueT]) -> ValueT:
        return self.loop.run_until_complete(doing)

    async def _settled(self) -> None:
        for _ in range(25):
            await asyncio.sleep(0)

    async def _begin(self, key: str) -> HandCall:
        call = self.till.begin(key)
        await self._settled()
        return call

    @rule(key=KEYS)
    def call(self, key: str) -> None:
        """A call joins, starts a run, or gets a stored result."""
        call: HandCall = self.run(self._begin(key))
        stored, until = self.stored.get(key, ("", 0.0))
        if self.till.now < until:
            assert text(self.run(call.outcome())) == stored
            return
        if not self.waiting[key] and not self.left[key]:
            self.runs[key] += 1
        self.waiting[key].append(call)

    @rule(key=KEYS, failing=st.booleans())
    def end(self, key: str, failing: bool) -> None:
        """A run ends, and all waiting callers get the same result."""
        if not self.waiting[key] and not self.left[key]:
            return
        self.ended += 1
        said: Any = ToolError(f"no {self.ended}") if failing else f"yes {self.ended}"
        self.run(self.till.end(said, key))
        outcomes = [self.run(call.outcome()) for call in self.waiting[key]]
        assert all(isinstance(self.run(call.outcome()), asyncio.CancelledError) for call in self.left[key])
        self.run(self._settled())
        if failing:
            assert all(outcome is said for outcome in outcomes)
        else:
            assert {text(outcome) for outcome in outcomes} <= {f"{key} yes {self.ended}"}
            self.stored[key] = (f"{key} yes {self.ended}", self.till.now + 60)
        self.waiting[key], self.left[key] = [], []

    @rule(key=KEYS, data=st.data(), reason=st.sampled_from(list(CancelReason)))
    def stop(self, key: str, data: st.DataObject, reason: CancelReason) -> None:
        """A waiting caller leaves, or the server stops it."""
        if not self.waiting[key]:
            return
        place = data.draw(st.integers(0, len(self.waiting[key]) - 1))
        began_it = place == 0 and not self.left[key]
        call = self.waiting[key].pop(place)
        call.stop(reason)
        self.run(self._settled())
        if began_it and reason in (CancelReason.CLIENT, CancelReason.DISCONNECT):
            self.left[key].append(call)
            return
        assert isinstance(self.run(call.outcome()), asyncio.CancelledError)
        if began_it and self.waiting[key]:
            self.runs[key] += 1

    @rule(seconds=st.sampled_from([1.0, 59.0, 60.0]))
    def pass_time(self, seconds: float) -> None:
        """Stored results expire."""
        self.till.now += seconds

    @invariant()
    def agree(self) -> None:
        """There is exactly one run per key with waiting callers, and waiting callers have no result."""
        tool = self.till.tool
        assert {key: tool.runs[key] for key in self.runs} == self.runs
        assert set(tool.ends) == {key for key, calls in self.waiting.items() if calls or self.left[key]}
        open_calls = (*self.waiting.values(), *self.left.values())
        assert not any(call.task.done() for calls in open_calls for call in calls)

    def teardown(self) -> None:
        for key in self.runs:
            self.end(key, failing=False)
        self.run(self._settled())
        assert asyncio.all_tasks(self.loop) == set()
        self.loop.close()


TestOnce = OnceMachine.TestCase
TestOnce.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


class Racer(Pay):
    """Yields to the event loop a number of times, counts concurrent runs, and fails sometimes."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self.at_work: set[str | None] = set()
        self.given: list[str] = []

    async def execute(self, arguments: Order, context: Context) -> str:
        assert arguments.key not in self.at_work, "two runs of one key at once"
        self.at_work.add(arguments.key)
        self.runs[arguments.key] += 1
        try:
            for _ in range(self._chance.randrange(12)):
                await asyncio.sleep(0)
            if self._chance.random() < 0.3:
                raise ToolError("not now")
        finally:
            self.at_work.discard(arguments.key)
        self.given.append(f"{arguments.key} {len(self.given)}")
        return self.given[-1]


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(SEED, SEED + 20))
async def test_races(seed: int) -> None:
    """For each key the work succeeds once, all callers get its result, and nothing is left over."""
    chance = random.Random(seed)
    before = asyncio.all_tasks()
    racer = Racer(chance)
    till = Till(racer)
    calls: list[tuple[str, HandCall]] = []
    for _ in range(200):
        key = chance.choice("abcd")
        calls.append((key, till.begin(key)))
        await turns(chance.randrange(3))
        if chance.random() < 0.5:
            chance.choice(calls)[1].stop(chance.choice(list(CancelReason)))
        await turns(chance.randrange(3))
    outcomes = [(key, await call.outcome()) for key, call in calls]
    await turns(20)
    assert asyncio.all_tasks() == before
    assert sorted(given[0] for given in racer.given) == sorted({given[0] for given in racer.given})
    answers = {(key, text(outcome)) for key, outcome in outcomes if not isinstance(outcome, BaseException)}
    assert answers <= {(given[0], given) for given in racer.given}
    failures = {type(outcome) for _, outcome in outcomes if isinstance(outcome, BaseException)}
    assert failures <= {ToolError, asyncio.CancelledError}


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
async def test_races_in_a_server(seed: int) -> None:
    """With timeouts and cancellations, each call gets at most one reply, and nothing is left over."""
    chance = random.Random(seed)
    before = asyncio.all_tasks()
    racer = Racer(chance)
    racer.timeout_seconds = 0.001
    cancelled: set[int] = set()
    async with ServerHost(container_of(racer)) as host:
        transport = MemoryTransport(host.handler)
        for number in range(300):
            transport.send(call("pay", {"key": chance.choice("abcdefgh")}, id=number))
            await turns(chance.randrange(4))
            if chance.random() < 0.5:
                victim = chance.randrange(number + 1)
                cancelled.add(victim)
                transport.send(message("notifications/cancelled", {"requestId": victim}, id=None))
            await turns(chance.randrange(4))
        replies = [json.loads(reply) for reply in await transport.close(PATIENCE_SECONDS)]
        assert not host.handler.inflight
        assert not host.assembly.deadlines._timed
        await until(lambda: asyncio.all_tasks() == before)
    ids = [reply["id"] for reply in replies]
    assert len(ids) == len(set(ids))
    assert set(ids) | cancelled == set(range(300))
    assert sorted(given[0] for given in racer.given) == sorted({given[0] for given in racer.given})
