"""The right to do the work of one key, where all replicas look."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, Literal, TypeAlias, TypeVar

from axolotl_core.errors import Overloaded
from axolotl_core.idempotency import IResultStore, ResultStoreError

__all__ = ["OnStoreFailure", "ResultClaim", "StoreReport"]

ValueT = TypeVar("ValueT")
OnStoreFailure: TypeAlias = Literal["open", "closed"]

_log = logging.getLogger("axolotl")

_RETRY_SECONDS: Final = 1.0
_LOG_SECONDS: Final = 10.0
_SLOWEST_POLL: Final = 10
"""How many times as long as the first the longest pause between two looks is."""


class StoreReport:
    """Writes to the log that the store is away: once in a while, however many calls it concerns."""

    def __init__(self, on_failure: OnStoreFailure, clock: Callable[[], float] = monotonic) -> None:
        self.on_failure: OnStoreFailure = on_failure
        self._clock = clock
        self._calls = 0
        self._silent_until = float("-inf")

    def failed(self, error: ResultStoreError) -> None:
        """Count a call that the store was away for."""
        self._calls += 1
        now = self._clock()
        if now >= self._silent_until:
            self._silent_until = now + _LOG_SECONDS
            fate = "run without it" if self.on_failure == "open" else "refused"
            _log.warning("the store of results is away (%s); calls %s: %d", error, fate, self._calls)
            self._calls = 0


class ResultClaim:
    """One attempt to have work done once: take the key, hold it while the work goes on, keep what came of it."""

    def __init__(
        self,
        store: IResultStore,
        key: str,
        report: StoreReport,
        *,
        timeout_seconds: float = 1.0,
        poll_seconds: float = 0.05,
    ) -> None:
        self._store = store
        self._key = key
        self._holder = secrets.token_hex(16)
        self._report = report
        self._timeout_seconds = timeout_seconds
        self._poll_seconds = poll_seconds
        self._held = False
        """Whether there may be something to release."""
        self._renewing: asyncio.Task[None] | None = None

    async def take(self, given_up: Callable[[], bool]) -> bytes | None:
        """Wait until there is a result, or until the key is ours, which gives None.

        Raises:
            Overloaded: if the store is away and nothing may run without it.
            asyncio.CancelledError: if all have given up; a client of a store may swallow a cancellation.
        """
        pause = self._poll_seconds
        while True:
            found = await self._found()
            if given_up():
                raise asyncio.CancelledError
            if found != "theirs":
                return found
            await asyncio.sleep(pause)
            pause = min(2 * pause, _SLOWEST_POLL * self._poll_seconds)

    async def _found(self) -> bytes | Literal["theirs"] | None:
        """Look once; None where the key is ours, or where the store is away and it does not matter."""
        self._held = True
        try:
            found = await self._asked(self._store.claim(self._key, self._holder))
        except ResultStoreError as error:
            self._do_without(error)
            return None
        if found == "mine":
            self._hold()
            return None
        self._held = False
        return found

    async def keep(self, record: bytes, seconds: float) -> None:
        """Store what came of the work; it was done whether this succeeds or not, so a failure is only logged."""
        if not self._held:
            return
        self._held = False  # if it fails the claim is left to expire: the later the work can be done again, the better
        try:
            kept = await self._asked(self._store.keep(self._key, self._holder, record, seconds))
        except ResultStoreError as error:
            _log.error("a result that must not be made twice could not be stored: %s", error)
            return
        if not kept:
            _log.error("a claim was lost while its work was done: the work may have been done twice")

    async def release(self) -> None:
        """Let go of the key, unless a result is stored under it."""
        if self._renewing is not None:
            self._renewing.cancel()
        if self._held:
            self._held = False
            with contextlib.suppress(ResultStoreError):  # it expires by itself
                await self._asked(self._store.release(self._key, self._holder))

    def _do_without(self, error: ResultStoreError) -> None:
        self._report.failed(error)
        if self._report.on_failure == "closed":
            refusal = Overloaded(
                "It cannot be made sure for now that this is done only once; try again", _RETRY_SECONDS
            )
            refusal.meta = {**(refusal.meta or {}), "reason": "results_unavailable"}
            raise refusal
        self._held = False

    def _hold(self) -> None:
        if self._store.renew_seconds is not None:
            self._renewing = asyncio.create_task(self._renew(self._store.renew_seconds))

    async def _renew(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            with contextlib.suppress(ResultStoreError):  # the next one may succeed in time
                if not await self._asked(self._store.renew(self._key, self._holder)):
                    _log.error("a claim was lost while its work goes on: another replica may do it again")
                    return

    async def _asked(self, answering: Awaitable[ValueT]) -> ValueT:
        """Wait for the store, but not for long; whatever it raises means that it is away."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await answering
        except ResultStoreError:
            raise
        except TimeoutError:
            raise ResultStoreError("it does not answer in time") from None
        except Exception as error:
            raise ResultStoreError(f"{type(error).__name__}: {error}") from error
