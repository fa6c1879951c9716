"""Deadlines without a timer a call: what may take equally long stands in one lane, and only its oldest is timed."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from axolotl_core.cancellation import CancelReason
from axolotl_core.layer import ToolCall

__all__ = ["DeadlineLane", "DeadlineTable"]

ItemT = TypeVar("ItemT")


class DeadlineLane(dict[ItemT, float]):
    """When each item is due, oldest first.

    It is a dict, so that putting an item in and taking it out costs no call: who adds one looks at `armed`.
    """

    __slots__ = ("_on_due", "armed", "seconds")

    def __init__(self, seconds: float, on_due: Callable[[ItemT], object]) -> None:
        super().__init__()
        self.seconds = seconds
        self.armed = False
        self._on_due = on_due

    def arm(self) -> None:
        """Start the timer for an item that was put into an empty lane."""
        self._wake_after(self.seconds)

    def _wake_after(self, seconds: float) -> None:
        self.armed = True
        asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self.armed = False
        now = time.monotonic()
        while self:
            item, due = next(iter(self.items()))
            if due > now:
                self._wake_after(due - now)
                return
            del self[item]
            self._on_due(item)


@dataclass(slots=True)
class _Pause:
    remaining_seconds: float
    holders: int = 0


class DeadlineTable:
    """The lanes of a server, one a duration, and the calls whose clock stands still."""

    def __init__(self) -> None:
        self._lanes: dict[float, DeadlineLane[ToolCall]] = {}
        self._pauses: dict[ToolCall, _Pause] = {}

    def lane(self, seconds: float) -> DeadlineLane[ToolCall]:
        """Give the lane whose calls are stopped with the reason `timeout` after that many seconds."""
        if seconds not in self._lanes:
            self._lanes[seconds] = DeadlineLane(seconds, _expire)
        return self._lanes[seconds]

    @contextmanager
    def paused(self, call: ToolCall) -> Iterator[None]:
        """Let a call's clock stand still while it waits for its user, however many questions it waits for."""
        pause = self._pauses.get(call) or self._pause(call)
        pause.holders += 1
        try:
            yield
        finally:
            pause.holders -= 1
            if not pause.holders:
                del self._pauses[call]
                _resume(call, pause.remaining_seconds)

    def _pause(self, call: ToolCall) -> _Pause:
        remaining = call.remaining_seconds
        self.lane(call.spec.limits.timeout_seconds).pop(call, None)
        call.deadline = None
        pause = self._pauses[call] = _Pause(call.spec.limits.timeout_seconds if remaining is None else remaining)
        return pause


def _resume(call: ToolCall, seconds: float) -> None:
    """Time the rest of a call on its own: its lane holds only calls that have the whole time before them."""
    due = call.deadline = time.monotonic() + seconds
    asyncio.get_running_loop().call_later(seconds, _expire_if_due, call, due)


def _expire_if_due(call: ToolCall, due: float) -> None:
    if call.deadline == due:
        _expire(call)


def _expire(call: ToolCall) -> None:
    call.stop(CancelReason.TIMEOUT)
