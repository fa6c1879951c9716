"""What happens to calls while the store that counts them is away."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, Literal

from axolotl_core.errors import Refused
from axolotl_core.quota import Claim, IQuotaStore, QuotaRefusal, QuotaStoreError

__all__ = ["OutageGuard"]

_log = logging.getLogger("axolotl")

_LOG_SECONDS: Final = 10.0
_FATE: Final = {"open": "let through unchecked", "closed": "refused"}


class OutageGuard(IQuotaStore):
    """Bounds how long a store may take, and lets calls pass or refuses them while it is away.

    A store that failed is left alone for a while, so that its absence costs calls no time; then one call tries it.
    """

    def __init__(
        self,
        store: IQuotaStore,
        on_failure: Literal["open", "closed"],
        *,
        timeout_seconds: float = 0.25,
        retry_seconds: float = 1.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._on_failure: Literal["open", "closed"] = on_failure
        self._timeout_seconds = timeout_seconds
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._try_at: float | None = None
        """When the store may be tried again; None while it works."""
        self._report = _OutageReport(_FATE[on_failure], clock)

    async def take(self, claims: Sequence[Claim]) -> QuotaRefusal | None:
        """Take all or nothing, or do without the store.

        Raises:
            Refused: if the store is away and calls are refused then.
        """
        if self._try_at is not None:
            now = self._clock()
            if now < self._try_at:
                self._do_without(None)
                return None
            self._try_at = now + self._retry_seconds  # the others do without until this one knows more
        try:
            async with asyncio.timeout(self._timeout_seconds):
                refusal = await self._store.take(claims)
        except Exception as error:
            self._try_at = self._clock() + self._retry_seconds
            self._do_without(error)
            return None
        if self._try_at is not None:
            self._try_at = None
            self._report.recovered()
        return refusal

    async def close(self) -> None:
        """Let go of the store."""
        await self._store.close()

    def _do_without(self, error: Exception | None) -> None:
        self._report.failed(error)
        if self._on_failure == "closed":
            milliseconds = round(self._retry_seconds * 1000)
            raise Refused(
                "The limits of this server cannot be checked for now; try again in a moment",
                meta={"reason": "quota_unavailable", "retryAfterMs": milliseconds},
            )


class _OutageReport:
    """Writes to the log that a store is away: once in a while, with the number of calls that it concerned."""

    def __init__(self, fate: str, clock: Callable[[], float]) -> None:
        self._fate = fate
        self._clock = clock
        self._calls = 0
        self._silent_until = float("-inf")
        self._told = False
        self._last: Exception | None = None

    def failed(self, error: Exception | None) -> None:
        self._calls += 1
        self._last = error or self._last
        now = self._clock()
        if now < self._silent_until:
            return
        self._silent_until = now + _LOG_SECONDS
        self._told = True
        problem, bug = _told(self._last)
        _log.warning("The quota store is away (%s); calls %s: %d", problem, self._fate, self._calls, exc_info=bug)
        self._calls = 0

    def recovered(self) -> None:
        if self._told:
            self._told = False
            _log.warning("The quota store is back; more calls %s: %d", self._fate, self._calls)
            self._calls = 0


def _told(error: Exception | None) -> tuple[str, Exception | None]:
    """Say what happened; what no store should raise is a bug, and shown with its traceback."""
    if isinstance(error, QuotaStoreError):
        return str(error), None
    if isinstance(error, TimeoutError):
        return "it does not answer in time", None
    return type(error).__name__, error
