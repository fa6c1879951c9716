"""The records of calls: one per call when it ends, and one when a destructive tool starts."""

from collections.abc import Callable
from secrets import token_hex
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec.structs import replace

from axolotl_core.calls.caller import ICaller
from axolotl_core.errors import ToolError
from axolotl_core.features.spec import FeatureSpec, ToolSpec
from axolotl_core.layers import Call, ILayer, Invoke
from axolotl_core.policies.audit import AuditRecord, timestamp
from axolotl_server.layers.call_ending import DONE, Ending, ending_of, ending_of_stop

if TYPE_CHECKING:
    from axolotl_server.audit.trail import AuditTrail


Describe: TypeAlias = Callable[[Call], AuditRecord]
"""Makes a record of what all records of a call have in common."""


class _OpenCall(msgspec.Struct, eq=False):
    """A call that runs, until its end is recorded.

    The call refers to this object, which drops its reference to the call at the end: a reference cycle would need the
    garbage collector.
    """

    call: Call | None
    id: str
    describe: Describe
    trail: "AuditTrail"
    running: "dict[ICaller, _OpenCall]"
    began: int
    facts: AuditRecord | None = None
    """Known since the start was recorded; the request has not changed since."""
    waiting: bool = False

    async def end(self, ending: Ending) -> None:
        """Record the end, unless it was recorded when the call was abandoned."""
        if self.call is not None:
            record = self._ended(self.call, ending)
            self.waiting = True
            await self.trail.write(record)
            self.waiting = False

    def end_at_once(self, call: Call, ending: Ending) -> None:
        """Record the end of a call without waiting for the sink."""
        self.trail.write_at_once(self._ended(call, ending))

    def abandon(self) -> None:
        """Record that the caller is answered although the code is still running."""
        call = self.call
        if call is not None:
            reason = call.cancel_reason
            self.end_at_once(call, Ending("abandoned", None if reason is None else reason.value))
        elif self.waiting:
            self.trail.flush()

    async def close(self, call: Call, error: BaseException) -> None:
        """Record the end of a call that raised an exception; if that fails, only a question is held back."""
        stop = call.cancel_reason
        ending = ending_of(error) if stop is None else ending_of_stop(stop)
        if isinstance(error, GeneratorExit):
            if self.call is not None:
                self.end_at_once(call, ending)
            return
        try:
            await self.end(ending)
        except ToolError:
            if ending.outcome == "input_required":
                raise

    def _ended(self, call: Call, ending: Ending) -> AuditRecord:
        self.call = None
        self.running.pop(call.caller, None)
        return ended_record(self.facts or self.describe(call), call, self.id, ending, self.began)


def ended_record(facts: AuditRecord, call: Call, call_id: str, ending: Ending, began: int) -> AuditRecord:
    """Make the record of an end, with durations in microseconds."""
    return replace(
        facts,
        time=timestamp(),
        event="end",
        call_id=call_id,
        outcome=ending.outcome,
        reason=ending.reason,
        rule=ending.rule,
        duration_seconds=round((perf_counter_ns() - began) / 1e9, 6),
        queued_seconds=round(call.queued_seconds, 6),
    )


class AuditLayer(ILayer):
    """Records the end of each call, refused ones included, but not completions, which come while somebody types."""

    def __init__(self, trail: "AuditTrail", describer: Callable[[FeatureSpec], Describe]) -> None:
        self.trail = trail
        self.describer = describer
        self._running: dict[ICaller, _OpenCall] = {}
        """By caller, because a layer may run the code in a call of its own."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        if spec.kind == "completion":
            return call_next
        trail, running, describe = self.trail, self._running, self.describer(spec)

        async def recorded(call: Call) -> Any:
            await trail.admit()
            reference = call.reference = call.reference or token_hex(8)
            open_call = _OpenCall(call, reference, describe, trail, running, perf_counter_ns())
            running[call.caller] = open_call
            call.when_abandoned(open_call.abandon)
            try:
                output = await call_next(call)
            except BaseException as error:
                await open_call.close(call, error)
                raise
            token = call.token
            await open_call.end(DONE if token is None or token.reason is None else ending_of_stop(token.reason))
            return output

        return recorded

    def announce(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        """Record that a tool which may destroy something is about to run, and run it when the record is written.

        If the process dies during the call, the record shows that the call was interrupted.
        """
        if not isinstance(spec, ToolSpec):
            return call_next
        if spec.tool.annotations.destructive is False or spec.tool.annotations.read_only:
            return call_next

        trail, running, describe = self.trail, self._running, self.describer(spec)

        async def announced(call: Call) -> Any:
            facts, open_call = describe(call), running.get(call.caller)
            if open_call is not None:
                open_call.facts = facts
            await trail.write(replace(facts, time=timestamp(), call_id=call.reference))
            return await call_next(call)

        return announced
