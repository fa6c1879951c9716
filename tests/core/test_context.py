"""ToolContext and ToolCall: what a tool and the layers know about a call."""

import time

import pytest

from axolotl_core import CancelReason, Implementation, Principal, ToolCall, ToolCancelled, ToolContext
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.spec import Limits, ToolSpec
from tests.core.samples import Add

LIMITS = Limits(timeout_seconds=1.0, max_concurrency=None, execution="loop", coerce_arguments=False)
SPEC = ToolSpec.of(Add(), LIMITS)


class Caller:
    """The other side of a call."""

    client: Implementation | None = Implementation("inspector", "1")

    def __init__(self) -> None:
        self.progress: list[tuple[float, float | None, str | None]] = []

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, total, message))


class Task:
    """Counts how often it was told to stop."""

    cancelled = 0

    def cancel(self) -> None:
        self.cancelled += 1


def test_a_context_can_be_made_by_hand() -> None:
    """A unit test of a tool needs nothing but `ToolContext()`."""
    context = ToolContext()
    context.report_progress(1)
    context.raise_if_cancelled()
    assert (context.client, context.principal, context.deadline) == (None, ANONYMOUS, None)
    assert (context.cancelled, context.cancel_reason, context.remaining_seconds) == (False, None, None)


def test_contexts_share_nothing() -> None:
    """Cancelling one call does not cancel another."""
    first, second = ToolContext(), ToolContext()
    first.cancellation.cancel(CancelReason.CLIENT)
    assert (first.cancelled, second.cancelled) == (True, False)


def test_a_context_tells_who_calls() -> None:
    """Request id, principal and client are those of the call."""
    principal = Principal("alice", tenant="acme", scopes=frozenset({"read"}))
    context = ToolContext(request_id="r1", caller=Caller(), principal=principal)
    assert (context.request_id, context.principal) == ("r1", principal)
    assert context.client == Implementation("inspector", "1")


def test_progress_goes_to_the_caller() -> None:
    """Value, total and message are passed on; the last two may be missing."""
    caller = Caller()
    context = ToolContext(caller=caller)
    context.report_progress(1)
    context.report_progress(2, 4, "half")
    assert caller.progress == [(1, None, None), (2, 4, "half")]


def test_a_cancelled_context_says_so() -> None:
    """A tool learns that it should stop, and why."""
    context = ToolContext()
    context.cancellation.cancel(CancelReason.TIMEOUT)
    assert (context.cancelled, context.cancel_reason) == (True, CancelReason.TIMEOUT)
    with pytest.raises(ToolCancelled):
        context.raise_if_cancelled()


@pytest.mark.parametrize(
    ("ahead", "least", "most"),
    [pytest.param(100.0, 90.0, 100.0, id="to-come"), pytest.param(-5.0, 0.0, 0.0, id="past")],
)
def test_the_time_left_is_never_negative(ahead: float, least: float, most: float) -> None:
    """A tool can ask how long it may still work."""
    context = ToolContext()
    context.deadline = time.monotonic() + ahead
    assert context.remaining_seconds is not None
    assert least <= context.remaining_seconds <= most


def make_call(task: Task) -> ToolCall:
    """Make a call as the server does."""
    return ToolCall(request_id=1, caller=Caller(), principal=ANONYMOUS, spec=SPEC, raw=b"{}", task=task)


def test_stopping_a_call_cancels_its_task_once() -> None:
    """The first reason ends the task, later ones do not disturb it again."""
    task = Task()
    call = make_call(task)
    call.stop(CancelReason.TIMEOUT)
    call.stop(CancelReason.CLIENT)
    assert (task.cancelled, call.cancel_reason) == (1, CancelReason.TIMEOUT)


def test_a_broken_callback_does_not_keep_a_call_running() -> None:
    """The task is cancelled although a tool's callback raises."""
    task = Task()
    call = make_call(task)
    call.cancellation.on_cancel(lambda _: 1 / 0)
    call.stop(CancelReason.TIMEOUT)
    assert task.cancelled == 1
