"""An authorizer that may fail or hang, asked in a way that always ends: no good answer is a refusal."""

import asyncio
import logging
import secrets
from dataclasses import dataclass

from axolotl_core.authorization import Decision, IAuthorizer
from axolotl_core.protocol.identity import Principal
from axolotl_core.spec import FeatureSpec

__all__ = ["BoundedAuthorizer", "Undecided"]

_log = logging.getLogger("axolotl")


@dataclass(frozen=True, slots=True)
class Undecided(Decision):
    """A refusal because nobody could decide; the reference is that of the log."""

    reference: str = ""


class BoundedAuthorizer(IAuthorizer):
    """Gives another authorizer so much time, and takes whatever goes wrong in it for a refusal."""

    def __init__(self, authorizer: IAuthorizer, timeout_seconds: float) -> None:
        self._authorizer = authorizer
        self._seconds = timeout_seconds
        self._left_behind: set[asyncio.Task[Decision]] = set()

    async def decide(self, principal: Principal, spec: FeatureSpec) -> Decision:
        """Ask in a task of its own, so that code which does not take notice of its cancellation is left behind."""
        asking = asyncio.get_running_loop().create_task(self._ask(principal, spec))
        try:
            await asyncio.wait((asking,), timeout=self._seconds)
        finally:
            if not asking.done():
                asking.cancel()
                self._left_behind.add(asking)
                asking.add_done_callback(self._left_behind.discard)
        if asking.done():
            return asking.result()
        return _undecided(spec, TimeoutError(f"The authorizer gave no answer within {self._seconds:g} seconds"))

    async def _ask(self, principal: Principal, spec: FeatureSpec) -> Decision:
        try:
            decision = await self._authorizer.decide(principal, spec)
            if isinstance(decision, Decision):
                return decision
            raise TypeError(f"The authorizer gives {type(decision).__name__}, which is no Decision")
        except BaseException as error:  # also SystemExit: the loop must not see it
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return _undecided(spec, error)


def _undecided(spec: FeatureSpec, error: BaseException) -> Undecided:
    reference = secrets.token_hex(6)
    _log.error("authorization of %s %s failed, reference %s", spec.kind, spec.name, reference, exc_info=error)
    return Undecided(False, "authorizer", "it failed", reference)
