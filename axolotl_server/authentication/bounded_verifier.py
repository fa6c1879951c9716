"""A verifier that may fail or hang, asked in a way that always ends: no good answer is no admission."""

import asyncio
import logging
import traceback

from axolotl_core.errors import InvalidToken
from axolotl_core.policies.access import ITokenVerifier
from axolotl_core.protocol.identity import Principal
from axolotl_server.authentication.fetcher import Unavailable
from axolotl_server.messages.flow_control import TokenBucket

_LINES_PER_SECOND = 5.0

_log = logging.getLogger("axolotl")


class BoundedVerifier(ITokenVerifier):
    """Gives another verifier so much time, and says that it is unavailable whatever goes wrong in it."""

    def __init__(self, verifier: ITokenVerifier, timeout_seconds: float) -> None:
        self._verifier = verifier
        self._seconds = timeout_seconds
        self._left_behind: set[asyncio.Task[Principal]] = set()
        self._lines = TokenBucket(_LINES_PER_SECOND)

    async def verify(self, token: str) -> Principal:
        """Ask in a task of its own, so that code which does not take notice of its cancellation is left behind.

        Raises:
            Unavailable: if there is no answer, or none that can be understood.
        """
        asking = asyncio.get_running_loop().create_task(self._ask(token))
        try:
            await asyncio.wait((asking,), timeout=self._seconds)
        finally:
            if not asking.done():
                self._left_behind.add(asking)
                asking.add_done_callback(self._forget)
                asking.cancel()
        if asking.done():
            return asking.result()
        raise self._unavailable(f"it gave no answer within {self._seconds:g} seconds")

    async def _ask(self, token: str) -> Principal:
        try:
            principal = await self._verifier.verify(token)
        except InvalidToken:
            raise
        except Unavailable as error:
            raise self._unavailable(str(error)) from None
        except BaseException as error:  # also SystemExit: the loop must not see it
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise self._unavailable(_place_of(error)) from None
        if not isinstance(principal, Principal):
            raise self._unavailable(f"it gives {type(principal).__name__}, which is no Principal")
        return principal

    def _forget(self, asking: asyncio.Task[Principal]) -> None:
        self._left_behind.discard(asking)
        if not asking.cancelled():
            asking.exception()  # nobody waits for it any more

    def _unavailable(self, reason: str) -> Unavailable:
        if self._lines.take():
            _log.error("a token could not be verified: %s", reason)
        return Unavailable(reason)


def _place_of(error: BaseException) -> str:
    """Say what failed and where, but not in its own words: they may repeat the token."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
