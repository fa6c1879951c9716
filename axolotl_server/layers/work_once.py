"""The work of one tool, done once for each key: what runs, who joins it, and what is kept of it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from axolotl_core.approval import CannotAskForApproval
from axolotl_core.content import ToolResult
from axolotl_core.errors import (
    Declined,
    InvalidArguments,
    ProtocolError,
    Refused,
    ToolCancelled,
    ToolError,
    ToolTimeout,
)
from axolotl_core.idempotency import Idempotency
from axolotl_core.layer import Invoke, ToolCall
from axolotl_core.question import only_asks
from axolotl_core.spec import ToolSpec
from axolotl_server.layers.idempotency_keys import CallKey, call_namer
from axolotl_server.layers.result_claim import ResultClaim
from axolotl_server.layers.result_records import output_writer, read_record, too_large, write_failure
from axolotl_server.layers.shared_run import SharedOutcome, SharedRun

__all__ = ["Keeping", "WorkOnce"]

_log = logging.getLogger("axolotl")

_NOT_OF_THE_TOOL: Final = (Declined, InvalidArguments, Refused, ToolCancelled, ToolTimeout)
"""Failures that say that the work was not done, or not ended: none of them is ever stored."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How the results of a server's tools are kept."""

    claim: Callable[[str], ResultClaim]
    """Makes the claim on a key."""
    finalise: Callable[[ToolCall], object]
    """Finalises things that were made for a run when it has ended."""
    max_record_bytes: int


class WorkOnce:
    """The work of one tool."""

    def __init__(self, spec: ToolSpec, call_next: Invoke, rule: Idempotency, keeping: Keeping) -> None:
        self._call_next = call_next
        self._rule = rule
        self._keeping = keeping
        self._name_call = call_namer(rule, spec)
        self._write_output = output_writer(spec)
        self._running: dict[str, SharedRun] = {}

    async def invoke(self, call: ToolCall) -> Any:
        """Give what comes, or came, of the work of the call's key."""
        named = self._name_call(call)
        if named is None:
            return await self._call_next(call)
        while True:
            run = self._running.get(named.key) or self._begin(named, call)
            if run.digest != named.others:
                raise _reused()
            outcome = await run.outcome_for(call)
            if outcome is not None:
                return outcome.give()

    def _begin(self, named: CallKey, call: ToolCall) -> SharedRun:
        run = SharedRun(call, named.others, partial(self._running.pop, named.key), self._keeping.finalise)
        self._running[named.key] = run
        run.start(self._work(run, self._keeping.claim(named.key)))
        return run

    async def _work(self, run: SharedRun, claim: ResultClaim) -> None:
        try:
            run.end(await self._outcome(run, claim))
            await run.code_ended()
        finally:
            await claim.release()

    async def _outcome(self, run: SharedRun, claim: ResultClaim) -> SharedOutcome:
        try:
            record = await claim.take(lambda: run.stopped)
            output = await self._call_next(run.call) if record is None else read_record(record, run.digest)
        except GeneratorExit:
            raise
        except BaseException as error:
            run.settle()
            if self._rule.store_failures and isinstance(error, ToolError) and _is_final(error, run):
                await self._keep(claim, partial(write_failure, error, run.digest), run)
            return SharedOutcome(error=error, only_for=_concerned(error, run))
        run.settle()
        if self._rule.store_failures or not (isinstance(output, ToolResult) and output.is_error):
            await self._keep(claim, partial(self._write_output, output, run.digest), run)
        return SharedOutcome(output)

    async def _keep(self, claim: ResultClaim, write: Callable[[], bytes], run: SharedRun) -> None:
        try:
            record = write()
        except Exception as error:  # what cannot be written cannot be sent either, and is told when that is tried
            _log.warning("a result of %s cannot be stored: %s", run.call.spec.name, type(error).__name__)
            return
        if len(record) > self._keeping.max_record_bytes:
            record = too_large(len(record), run.digest)
        await claim.keep(record, self._rule.window_seconds)


def _is_final(error: ToolError, run: SharedRun) -> bool:
    """Tell whether a failure is what came of the work: code that was stopped may say anything."""
    return not run.stopped and not isinstance(error, _NOT_OF_THE_TOOL)


def _concerned(error: BaseException, run: SharedRun) -> ToolCall | None:
    """Say for whom a failure is: a question, and a client that cannot be asked, is a matter of one caller alone."""
    if run.stopped:
        return run.nobody
    if only_asks(error) or isinstance(error, ProtocolError | CannotAskForApproval):
        return run.asked
    return None


def _reused() -> Refused:
    return Refused(
        "A call with the same key, but other arguments, is running; use another key for another call",
        meta={"reason": "key_reused"},
    )
