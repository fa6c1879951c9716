"""A token bucket: so many a second, and as many at once after a pause."""

import re
import time
from collections import deque
from typing import Final, Generic, TypeVar

ItemT = TypeVar("ItemT")

MAX_WAITING: Final = 1000
"""How many items may wait; those that must not be lost are kept beyond it."""
_DROPPABLE: Final = re.compile(rb'\{"jsonrpc":"2\.0","method":"notifications/(?!cancelled"|subscriptions/)')


def is_droppable(message: bytes) -> bool:
    """Tell what a slow reader may lose: notifications, save those that begin or end something."""
    return _DROPPABLE.match(message) is not None


class Backlog(Generic[ItemT]):
    """A queue in which the oldest item that may be lost makes room for the next one."""

    def __init__(self) -> None:
        self._items: deque[tuple[ItemT, bool]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: ItemT, *, droppable: bool = False) -> None:
        """Add an item; one that may be lost is, where nothing else can make room."""
        if not droppable or len(self._items) < MAX_WAITING or self._make_room():
            self._items.append((item, droppable))

    def take(self) -> ItemT:
        """Take the oldest item."""
        return self._items.popleft()[0]

    def clear(self) -> None:
        """Drop everything."""
        self._items.clear()

    def _make_room(self) -> bool:
        for place, (_, droppable) in enumerate(self._items):
            if droppable:
                del self._items[place]
                return True
        return False


class TokenBucket:
    """Says yes as long as there are tokens; they come back with time."""

    __slots__ = ("_capacity", "_filled_at", "_per_second", "_tokens")

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._capacity = self._tokens = max(1.0, per_second)
        self._filled_at = time.monotonic()

    def take(self) -> bool:
        """Take a token; answers False if there is none."""
        now = time.monotonic()
        self._tokens = min(self._capacity, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
