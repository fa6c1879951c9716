"""Deadlines without a timer a call: things that may take equally long stand in one lane, and only its oldest is timed."""

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from axolotl_core.cancellation import CancelReason
from axolotl_core.layer import ToolCall

__all__ = ["DeadlineLane", "DeadlineTable"]

ItemT = TypeVar("ItemT")


class DeadlineLane(Generic[ItemT]):
    """Things with the same time to live, oldest first; adding and removing one costs a dict entry."""

    __slots__ = ("_armed", "_due", "_on_due", "_seconds")

    def __init__(self, seconds: float, on_due: Callable[[ItemT], object]) -> None:
        self._seconds = seconds
        self._on_due = on_due
        self._due: dict[ItemT, float] = {}
        self._armed = False

    def add(self, item: ItemT) -> float:
        """Start the clock of an item and answer when it runs out."""
        due = time.monotonic() + self._seconds
        self._due[item] = due
        if not self._armed:
            self._arm(self._seconds)
        return due

    def discard(self, item: ItemT) -> None:
        """Stop the clock of an item, whether it ran out or not."""
        self._due.pop(item, None)

    def __len__(self) -> int:
        return len(self._due)

    def _arm(self, seconds: float) -> None:
        self._armed = True
        asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._armed = False
        now = time.monotonic()
        while self._due:
            item, due = next(iter(self._due.items()))
            if due > now:
                self._arm(due - now)
                return
            del self._due[item]
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
