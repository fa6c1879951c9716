"""Limits for slow readers and fast writers: a bounded queue, and a token bucket."""

import re
import time
from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

ItemT = TypeVar("ItemT")

MAX_WAITING: Final = 1000
"""How many items may wait; more are kept only if they must not be dropped."""
MAX_WAITING_BYTES: Final = 1024 * 1024
"""How many bytes of droppable items may wait, unless there is only one of them."""
_DROPPABLE: Final = re.compile(rb'\{"jsonrpc":"2\.0","method":"notifications/(?!cancelled"|subscriptions/)')


def is_droppable(message: bytes) -> bool:
    """Tell whether a slow reader may miss a message: notifications, except those that begin or end something."""
    return _DROPPABLE.match(message) is not None


class Backlog(Generic[ItemT]):
    """A queue that drops its oldest droppable item when it is full."""

    def __init__(self) -> None:
        self._items: deque[tuple[ItemT, int | None]] = deque()
        """The items; droppable ones with their size."""
        self._droppable_bytes = 0
        self.dropped = 0
        """The number of items that were dropped."""

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[ItemT]:
        return (item for item, _ in self._items)

    def has_room(self, droppable_bytes: int) -> bool:
        """Tell whether a droppable item of this size fits without dropping another one."""
        fits = not self._droppable_bytes or self._droppable_bytes + droppable_bytes <= MAX_WAITING_BYTES
        return fits and len(self._items) < MAX_WAITING

    def put(self, item: ItemT, *, droppable_bytes: int | None = None) -> None:
        """Add an item. Give the size of a droppable one: it is dropped if no other droppable item makes room."""
        if droppable_bytes is None:
            self._items.append((item, None))
            return
        while self._droppable_bytes and self._droppable_bytes + droppable_bytes > MAX_WAITING_BYTES:
            self._drop_oldest()
        if len(self._items) < MAX_WAITING or self._drop_oldest():
            self._items.append((item, droppable_bytes))
            self._droppable_bytes += droppable_bytes
        else:
            self.dropped += 1

    def take(self) -> ItemT:
        """Take the oldest item."""
        item, size = self._items.popleft()
        self._droppable_bytes -= size or 0
        return item

    def clear(self) -> None:
        self._items.clear()
        self._droppable_bytes = 0

    def _drop_oldest(self) -> bool:
        for place, (_, size) in enumerate(self._items):
            if size is not None:
                del self._items[place]
                self._droppable_bytes -= size
                self.dropped += 1
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

    def borrow(self) -> None:
        """Take the next token in advance, for an event that happens when the bucket has it."""
        self._tokens -= 1.0
