"""Limits for slow readers and fast writers: a bounded queue, and a token bucket."""

import re
import time
from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

ItemT = TypeVar("ItemT")

MAX_WAITING: Final = 1000
"""How many items may wait; more are kept only if they must not be dropped."""
_DROPPABLE: Final = re.compile(rb'\{"jsonrpc":"2\.0","method":"notifications/(?!cancelled"|subscriptions/)')


def is_droppable(message: bytes) -> bool:
    """Tell whether a slow reader may miss a message: notifications, except those that begin or end something."""
    return _DROPPABLE.match(message) is not None


class Backlog(Generic[ItemT]):
    """A queue that drops its oldest droppable item when it is full."""

    def __init__(self) -> None:
        self._items: deque[tuple[ItemT, bool]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[ItemT]:
        return (item for item, _ in self._items)

    def put(self, item: ItemT, *, droppable: bool = False) -> None:
        """Add an item; a droppable one is dropped if no other item makes room."""
        if not droppable or len(self._items) < MAX_WAITING or self._make_room():
            self._items.append((item, droppable))

    def take(self) -> ItemT:
        """Take the oldest item."""
        return self._items.popleft()[0]

    def clear(self) -> None:
        self._items.clear()

    def _make_room(self) -> bool:
        for place, (_, droppable) in enumerate(self._items):
            if droppable:
                del self._items[place]
                return True
        return False


class TokenBucket:
    """A token bucket: it allows a number of events per second, and as many at once after a pause."""

    __slots__ = ("_capacity", "_filled_at", "_per_second", "_tokens")

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._capacity = self._tokens = max(1.0, per_second)
        self._filled_at = time.monotonic()

    def take(self) -> bool:
        """Take a token, or return False if there is none."""
        now = time.monotonic()
        self._tokens = min(self._capacity, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
