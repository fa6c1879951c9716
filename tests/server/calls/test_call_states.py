"""The life of a call: every event in every state, without an event loop."""

from collections.abc import Callable, Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InvalidRequest, Overloaded, RequestCancelled, ToolError
from axolotl_core.layers import CallState
from axolotl_core.protocol.identity import ANONYMOUS, RequestId
from axolotl_core.protocol.messages import read_head
from axolotl_server.calls.running_call import RunningCall, RunningCalls
from axolotl_server.protocol.connection import Connection, IRunning
from axolotl_server.protocol.request import Request
from tests.support.peers.layer_calls import spec_of
from tests.support.peers.wire import call as call_message
from tests.support.tools import Echo

SHARE = ("ada",)
CALLER_LEFT = (CancelReason.CLIENT, CancelReason.OPERATOR, CancelReason.DISCONNECT)


class Timer(NamedTuple):
    act: Callable[[], object]
    timers: "list[Timer]"

    def cancel(self) -> None:
        self.timers.remove(self)


class Loop:
    """Keeps timers until the test fires them."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, seconds: float, act: Callable[..., object], *given: Any) -> Timer:
        timer = Timer(act, self.timers)
        if not given:  # the other timer is that of the table
            self.timers.append(timer)
        return timer


class Task:
    """Counts how often it was cancelled."""

    def __init__(self) -> None:
        self.cancelled = 0

    def cancel(self) -> None:
        self.cancelled += 1

    def uncancel(self) -> None:
        self.cancelled -= 1


class Exchange:
    share = SHARE
    principal = ANONYMOUS
    status = 200
    headers: dict[bytes, bytes] | None = None

    def __init__(self) -> None:
        self.loop: Any = Loop()
        self.early: list[bytes | None] = []

    def reply_early(self, reply: bytes | None, running: object) -> None:
        self.early.append(reply)


class Method:
    """Replies to failures with their text."""

    def reply_to_failure(self, error: ToolError, request: Request) -> bytes:
        return b'"%b"' % error.message.encode()


class Life:
    """One call, and everything that knows of it."""

    def __init__(self, calls: RunningCalls | None = None, connection: Connection | None = None) -> None:
        self.calls = RunningCalls(10, 1) if calls is None else calls
        self.connection = connection or Connection(print)
        self.exchange = cast("Any", Exchange())
        self.task = Task()
        era: Any = SimpleNamespace(revision=SimpleNamespace(stateless=False))
        data = call_message("echo", id=1)
        self.request = Request(read_head(data), data, era, self.exchange, self.connection)
        binding: Any = SimpleNamespace(encode=lambda output, request: b'"%b"' % output.encode())
        made: Any = {"method": Method(), "binding": binding, "task": self.task}
        self.call = RunningCall(
            1, caller=self.request, principal=ANONYMOUS, spec=spec_of(Echo()), raw=b"{}", calls=self.calls, **made
        )
        self.refusal = self.calls.enter(self.call)
        self.replies: list[bytes | None] = []

    def end(self) -> None:
        """The code returns."""
        self.replies.append(self.call.reply("done"))
        self.call.end()

    def fire(self) -> None:
        """The grace period is over."""
        (timer,) = self.exchange.loop.timers
        self.exchange.loop.timers.clear()
        timer.act()

    @property
    def facts(self) -> "Facts":
        return Facts(
            self.call.state,
            is_counted=self.call in self.calls,
            is_line_open=not self.request.finished,
            is_id_used=self.connection.calls.get(1) is self.call,
            is_zombie=len(self.calls.zombies) == 1,
            has_share=self.calls._by_share[SHARE] == 1,
            has_timer=len(self.exchange.loop.timers) == 1,
        )


class Facts(NamedTuple):
    """What follows from the state of a call."""

    state: CallState
    is_counted: bool
    is_line_open: bool
    is_id_used: bool
    is_zombie: bool
    has_share: bool
    has_timer: bool


FACTS = {
    "running": Facts(CallState.RUNNING, True, True, True, False, True, False),
    "left": Facts(CallState.STOPPED, True, False, False, False, True, True),
    "stopped": Facts(CallState.STOPPED, True, True, True, False, True, True),
    "ended": Facts(CallState.ENDED, False, False, False, False, False, False),
    "abandoned": Facts(CallState.ABANDONED, False, False, False, True, True, False),
    "over": Facts(CallState.ABANDONED, False, False, False, False, False, False),
}
"""A stopped call whose caller has left frees its ID at once; an abandoned one is over when its code has ended."""

EVENTS: dict[str, Callable[[Life], None]] = {
    "the client cancels": lambda life: life.call.stop(CancelReason.CLIENT),
    "the deadline": lambda life: life.call.stop(CancelReason.TIMEOUT),
    "the code ends": Life.end,
    "the grace period": Life.fire,
}
CHANGES = {
    ("running", "the client cancels"): "left",
    ("running", "the deadline"): "stopped",
    ("running", "the code ends"): "ended",
    ("left", "the code ends"): "ended",
    ("left", "the grace period"): "abandoned",
    ("stopped", "the code ends"): "ended",
    ("stopped", "the grace period"): "abandoned",
    ("abandoned", "the code ends"): "over",
}
"""All other stops change nothing, and all other events cannot happen."""


def possible(events: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Return the events that can happen, each with the state after it."""
    state = "running"
    for event in events:
        if (state, event) in CHANGES or event in ("the client cancels", "the deadline"):
            state = CHANGES.get((state, event), state)
            yield event, state


@pytest.mark.parametrize("events", [*product(EVENTS, repeat=4)], ids=", ".join)
def test_every_event_in_every_state(events: tuple[str, ...]) -> None:
    """A call is stopped once, and answered once, whatever happens in which order."""
    life = Life()
    assert life.facts == FACTS["running"]
    stopped = 0
    for event, state in possible(events):
        EVENTS[event](life)
        assert life.facts == FACTS[state], event
        stopped = stopped or state in ("left", "stopped")
        assert life.task.cancelled == (stopped and state not in ("ended", "over"))
    answers = [reply for reply in (*life.exchange.early, *life.replies) if reply is not None]
    assert len(answers) <= 1


@pytest.mark.parametrize("reason", list(CancelReason))
@pytest.mark.parametrize("in_time", [True, False])
def test_a_stopped_call_is_answered_for_its_reason(reason: CancelReason, in_time: bool) -> None:
    """Whatever its code returns: nothing for a caller that has left, and an error for all others."""
    life = Life()
    life.call.stop(reason)
    if in_time:
        life.end()
        (reply,) = life.replies
    else:
        life.fire()
        (reply,) = life.exchange.early
        life.end()
        assert life.replies == [None]
    if reason in CALLER_LEFT:
        assert reply is None
    else:
        assert reply is not None
        assert (b"did not finish" in reply) is (reason is CancelReason.TIMEOUT)


def test_the_reply_to_an_abandoned_call_is_decided_before_its_layers_are_told() -> None:
    """They may write records, and must not change the reply; it is sent after that."""
    life, seen = Life(), []

    def tell() -> None:
        seen.append((life.call.abandoned, len(life.exchange.early)))
        life.call.spec = cast("Any", None)

    life.call.when_abandoned(tell)
    life.call.stop(CancelReason.TIMEOUT)
    life.fire()
    assert seen == [(True, 0)]
    assert b"Tool echo did not finish" in life.exchange.early[0]


def test_a_caller_over_http_with_a_handshake_gets_a_response() -> None:
    """There, a client that gets no response asks again."""
    life = Life()
    life.exchange.headers = {}
    life.call.stop(CancelReason.DISCONNECT)
    with pytest.raises(RequestCancelled):
        life.call.reply("done")


def test_code_that_cancels_itself_is_answered_for_its_reason() -> None:
    """Code may cancel its token. The first reason counts, and the server can stop the call all the same."""
    life = Life()
    life.call.cancellation.cancel(CancelReason.TIMEOUT)
    assert life.facts == FACTS["running"]
    life.call.stop(CancelReason.CLIENT)
    assert life.facts == FACTS["stopped"]
    life.end()
    assert b"did not finish" in (life.replies[0] or b"")


class Stopping(Connection):
    """Stops each call as soon as it knows of it, like the connection of a task that was cancelled before it began."""

    def register(self, request_id: RequestId, running: IRunning) -> None:
        super().register(request_id, running)
        running.stop(CancelReason.SHUTDOWN)


def test_a_call_that_is_stopped_before_it_enters() -> None:
    """It is answered in time, even if its code does not end."""
    life = Life(connection=Stopping(print))
    assert life.facts == FACTS["stopped"]
    life.fire()
    assert life.facts == FACTS["abandoned"]


@pytest.mark.parametrize("connection", [Connection, Stopping])
def test_a_refused_call(connection: type[Connection]) -> None:
    """A call without room never runs: its ID is free, and stopping it changes nothing."""
    life = Life(RunningCalls(0, 1), connection=connection(print))
    assert isinstance(life.refusal, Overloaded)
    for _ in range(2):
        assert (life.call.state, life.call in life.calls) == (CallState.REFUSED, False)
        assert (life.connection.calls, life.exchange.loop.timers, life.task.cancelled) == ({}, [], 0)
        life.call.stop(CancelReason.SHUTDOWN)


def test_a_caller_has_a_limit_until_its_code_ends() -> None:
    """An abandoned call counts for its caller, because its code still runs."""
    life = Life()
    life.call.stop(CancelReason.CLIENT)
    life.fire()
    assert isinstance(Life(life.calls).refusal, Overloaded)
    life.end()
    assert Life(life.calls).refusal is None


def test_an_id_that_is_in_use_is_refused() -> None:
    """The call that has it keeps it."""
    life = Life()
    with pytest.raises(InvalidRequest):
        life.calls.enter(life.call)
    assert life.facts == FACTS["running"]
