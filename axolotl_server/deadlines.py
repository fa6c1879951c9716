"""Deadlines without a timer a call: what may take equally long stands in one lane, and only its oldest is timed."""

import asyncio
import time
from collections.abc import Callable
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


class DeadlineTable:
    """The lanes of a server, one a duration."""

    def __init__(self) -> None:
        self._lanes: dict[float, DeadlineLane[ToolCall]] = {}

    def lane(self, seconds: float) -> DeadlineLane[ToolCall]:
        """Give the lane whose calls are stopped with the reason `timeout` after that many seconds."""
        if seconds not in self._lanes:
            self._lanes[seconds] = DeadlineLane(seconds, _expire)
        return self._lanes[seconds]


def _expire(call: ToolCall) -> None:
    call.stop(CancelReason.TIMEOUT)
