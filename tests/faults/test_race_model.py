"""Completion, cancellation, deadline and shutdown in any order: each call is decided once and answered accordingly."""

import asyncio
import collections
import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pydantic import BaseModel

from axolotl_core import Context, ITool, ToolError
from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.layers import Call
from axolotl_server import ServerHost
from tests.support.object_counts import bulkhead_of, holdings
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.peers.wire import call, message
from tests.support.tools import container_of

pytestmark = pytest.mark.slow

PLACES = 2
UNWANTED = (CancelReason.CLIENT, CancelReason.OPERATOR, CancelReason.DISCONNECT)
REASONS = [reason for reason in CancelReason if reason is not CancelReason.LOST]  # only tasks are lost
SETTINGS = {"limits": {"timeout_seconds": 600}}


class Manner(BaseModel):
    deaf: bool


class Puppet(ITool[Manner, str]):
    """A tool that the test controls."""

    name = "puppet"
    max_concurrency = PLACES
    queue_limit = 1000
    queue_timeout_seconds = 600

    def __init__(self) -> None:
        self.strings: dict[Any, asyncio.Future[str]] = {}

    async def execute(self, arguments: Manner, context: Context) -> str:
        string = self.strings[context.request_id]
        try:
            return await asyncio.shield(string)
        except asyncio.CancelledError:
            if arguments.deaf:
                return await asyncio.shield(string)
            raise


class Races(RuleBasedStateMachine):
    """Lets the event loop run only sometimes, so that several events happen between two iterations."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.puppet = Puppet()
        self.host = ServerHost(container_of(self.puppet), flags=SETTINGS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("axolotl_server.calls.running_call.GRACE_SECONDS", 0)
            self.run(self.host.start())
        self.transport = self.run(self._open())
        self.decided: dict[int, CancelReason] = {}
        self.answers: dict[int, list[Any]] = collections.defaultdict(list)
        self.number = 0

    async def _open(self) -> MemoryTransport:
        return MemoryTransport(self.host.handler)

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @property
    def in_flight(self) -> dict[Any, Call]:
        return {one.request_id: one for one in self.host.handler.inflight}

    @rule(deaf=st.booleans())
    def begin(self, deaf: bool) -> None:
        self.number += 1
        self.puppet.strings[self.number] = self.loop.create_future()
        self.transport.send(call("puppet", {"deaf": deaf}, id=self.number))

    @precondition(lambda self: self.number)
    @rule(data=st.data(), fails=st.booleans())
    def finish(self, data: st.DataObject, fails: bool) -> None:
        string = self.puppet.strings[data.draw(st.integers(1, self.number))]
        if not string.done():
            string.set_exception(ToolError("failed")) if fails else string.set_result("done")

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), reason=st.sampled_from(REASONS))
    def stop(self, data: st.DataObject, reason: CancelReason) -> None:
        number, one = data.draw(st.sampled_from(sorted(self.in_flight.items(), key=lambda item: item[0])))
        one.stop(reason)
        self.decided.setdefault(number, reason)

    @precondition(lambda self: self.number)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """A client cancels a running or finished call."""
        number = data.draw(st.integers(1, self.number))
        self.transport.send(message("notifications/cancelled", {"requestId": number}, id=None))
        self.turn(1)
        one = self.in_flight.get(number)
        if one is not None and one.cancel_reason is CancelReason.CLIENT:
            self.decided.setdefault(number, CancelReason.CLIENT)
        elif not self.answers[number] and one is None and number not in self.decided:
            self.decided[number] = CancelReason.CLIENT

    @rule(times=st.integers(1, 6))
    def turn(self, times: int) -> None:
        self.run(self._turn(times))
        outbox = self.transport._outbox
        while not outbox.empty():
            said = json.loads(outbox.get_nowait())
            self.answers[said["id"]].append(said["result"])

    async def _turn(self, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(0)

    @invariant()
    def nobody_is_answered_twice(self) -> None:
        assert all(len(answers) <= 1 for answers in self.answers.values())

    @invariant()
    def answers_are_as_decided(self) -> None:
        for number, answers in self.answers.items():
            for answer in answers:
                reason = answer["_meta"].get("axolotl/reason")
                assert reason == self.decided.get(number)
                assert reason not in UNWANTED

    @invariant()
    def there_are_so_many_places(self) -> None:
        assert bulkhead_of(self.host, "puppet").running <= PLACES

    def teardown(self) -> None:
        for string in self.puppet.strings.values():
            if not string.done():
                string.set_result("done")
        for _ in range(50 + 10 * self.number):
            self.turn(1)
        left = holdings(self.host)
        self.run(self.transport.close())
        self.run(self.host.stop())
        self.loop.close()
        wanted = {number for number in self.puppet.strings if self.decided.get(number) not in UNWANTED}
        assert {number for number, answers in self.answers.items() if answers} == wanted
        assert left == {}


TestRaces = Races.TestCase
TestRaces.__doc__ = "In whatever order a call is finished and stopped, it is decided once and answered as decided."
TestRaces.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
