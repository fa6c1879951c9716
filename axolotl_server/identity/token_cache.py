"""Tokens that were accepted: known again by their digest, and believed no longer than they say."""

import time
from collections import OrderedDict
from collections.abc import Callable
from math import inf, isfinite
from typing import Any, Final, NamedTuple

from axolotl_core.protocol.identity import Principal

__all__ = ["TokenCache"]


class _Accepted(NamedTuple):
    principal: Principal
    not_before: float
    expires: float
    """By the clock that the issuer goes by too, with the skew that is allowed."""
    forgotten: float
    """By the clock that nobody sets."""


class TokenCache:
    """Remembers so many tokens, those that were used last; no token itself is kept."""

    def __init__(
        self,
        maximum: int,
        seconds: float,
        skew_seconds: float,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._maximum: Final = maximum if seconds > 0 else 0
        self._seconds = seconds
        self._skew_seconds = skew_seconds
        self._now = now
        self._monotonic = monotonic
        self._accepted: OrderedDict[bytes, _Accepted] = OrderedDict()

    def __len__(self) -> int:
        return len(self._accepted)

    def get(self, digest: bytes) -> Principal | None:
        """Give the principal of a token that was accepted and whose time has come and is not over."""
        found = self._accepted.get(digest)
        if found is None:
            return None
        if found.not_before <= self._now() < found.expires and self._monotonic() < found.forgotten:
            self._accepted.move_to_end(digest)
            return found.principal
        del self._accepted[digest]
        return None

    def put(self, digest: bytes, principal: Principal) -> None:
        """Remember a token; what its claims say of its time holds."""
        if not self._maximum:
            return
        starts, ends = _time(principal.claims.get("nbf"), -inf), _time(principal.claims.get("exp"), inf)
        self._accepted[digest] = _Accepted(
            principal, starts - self._skew_seconds, ends + self._skew_seconds, self._monotonic() + self._seconds
        )
        self._accepted.move_to_end(digest)
        if len(self._accepted) > self._maximum:
            self._accepted.popitem(last=False)


def _time(claim: Any, otherwise: float) -> float:
    """Read a time; one that is none leaves the token out of its time, so that it is verified anew each time."""
    if claim is None:
        return otherwise
    try:
        time_claimed = float(claim)
    except (TypeError, ValueError, OverflowError):
        return -otherwise
    return time_claimed if isfinite(time_claimed) else -otherwise
