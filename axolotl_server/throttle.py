"""A token bucket: so many a second, and as many at once after a pause."""

import time

__all__ = ["TokenBucket"]


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
