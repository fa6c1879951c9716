"""The deadlines of calls, which share one timer."""

import asyncio
from time import monotonic
from typing import Any

import pytest

from axolotl_core.calls.cancellation import CancelReason
from axolotl_server.layers.deadline import DeadlineTable
from tests.support.servers.serving import until


class Timed:
    """What a deadline needs of a call."""

    def __init__(self, stopped: list["Timed"], error: Exception | None = None) -> None:
        self.deadline: float | None = None
        self._stopped = stopped
        self._error = error

    @property
    def remaining_seconds(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - monotonic())

    def stop(self, reason: CancelReason) -> None:
        assert (reason, self.remaining_seconds) == (CancelReason.TIMEOUT, 0.0)
        self._stopped.append(self)
        if self._error is not None:
            raise self._error


async def test_calls_are_stopped_when_they_are_due() -> None:
    """A call is stopped at its own deadline, whichever of them began first; one that has ended is not."""
    table, stopped = DeadlineTable(), list[Any]()
    slow, ended, fast = Timed(stopped), Timed(stopped), Timed(stopped)
    for call, seconds in ((slow, 0.2), (ended, 0.01), (fast, 0.05)):
        table.start(call, seconds)  # type: ignore[arg-type]
    table.end(ended)  # type: ignore[arg-type]
    await until(lambda: len(stopped) == 2)
    assert stopped == [fast, slow]


async def test_a_deadline_that_was_moved() -> None:
    """A call whose deadline was moved is stopped at the later time."""
    table, stopped = DeadlineTable(), list[Any]()
    moved, other = Timed(stopped), Timed(stopped)
    table.start(moved, 0.01)  # type: ignore[arg-type]
    table.start(other, 0.05)  # type: ignore[arg-type]
    assert moved.deadline is not None
    moved.deadline += 0.15
    await until(lambda: len(stopped) == 2)
    assert stopped == [other, moved]


@pytest.mark.parametrize("later_seconds", [0.01, 0.05])
async def test_a_call_that_cannot_be_stopped(later_seconds: float) -> None:
    """An error while one call is stopped does not let the others run on."""
    table, stopped, errors = DeadlineTable(), list[Any](), list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["exception"]))
    failure = RuntimeError("it cannot be stopped")
    for call, seconds in ((Timed(stopped, failure), 0.01), (Timed(stopped), later_seconds)):
        table.start(call, seconds)  # type: ignore[arg-type]
    await until(lambda: len(stopped) == 2)
    assert errors == [failure]


async def test_a_call_after_all_others_have_ended() -> None:
    """The deadline of a call that has ended does not delay those that come later."""
    table, stopped = DeadlineTable(), list[Any]()
    first, second = Timed(stopped), Timed(stopped)
    table.start(first, 3600)  # type: ignore[arg-type]
    table.end(first)  # type: ignore[arg-type]
    table.start(second, 0.01)  # type: ignore[arg-type]
    await until(lambda: stopped == [second])
