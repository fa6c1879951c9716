"""Audit records of tasks: of the call that was accepted, of each run, and of what callers decide."""

from collections.abc import Awaitable, Callable
from secrets import token_hex
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, Invoke, Layer
from axolotl_core.policies.audit import AuditRecord
from axolotl_core.task_engine import TaskRecord
from axolotl_server.layers.audit import AuditLayer, Describe, ended_record
from axolotl_server.layers.call_ending import Ending, ending_of


def accepting(records: AuditLayer) -> Layer:
    """Record that a call was accepted as a stored task, or why not; the innermost function returns the task."""

    def accept(spec: FeatureSpec, call_next: Invoke) -> Invoke:
        trail, describe = records.trail, records.describer(spec)

        async def accepted(call: Call) -> TaskRecord:
            await trail.admit()
            began, reference = perf_counter_ns(), token_hex(8)
            call.reference = reference
            try:
                task: TaskRecord = await call_next(call)
            except Exception as error:
                await trail.write(ended_record(describe(call), call, reference, ending_of(error), began))
                raise
            facts = replace(describe(call), task=task.id)
            await trail.write(ended_record(facts, call, reference, Ending("accepted"), began))
            return task

        return accepted

    return accept


class TaskReference(NamedTuple):
    """What the records of a run have in common with the record of the call that was accepted."""

    call_id: str
    """Empty if the call was not recorded."""
    task: str
    run: int


FindTask: TypeAlias = Callable[[Call], TaskReference]


class RunAuditLayer(AuditLayer):
    """Records the runs of stored tasks, with the ID of the call that was accepted."""

    def __init__(self, records: AuditLayer, find_task: FindTask) -> None:
        def describer(spec: FeatureSpec) -> Describe:
            describe = records.describer(spec)

            def described(call: Call) -> AuditRecord:
                task = find_task(call)
                return replace(describe(call), task=task.task, run=task.run)

            return described

        super().__init__(records.trail, describer)
        self._find_task = find_task

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        find_task, recorded = self._find_task, super().wrap(spec, call_next)

        def referenced(call: Call) -> Awaitable[Any]:
            call.reference = find_task(call).call_id or None
            return recorded(call)

        return referenced


def about_task(task: TaskRecord) -> AuditRecord:
    """Begin a record of a decision about a task."""
    return AuditRecord("", "answered", kind="tool", name=task.tool, task=task.id)


def cancellation(task: TaskRecord, reason: CancelReason) -> AuditRecord:
    """Make the record that somebody cancelled a task, which may have no run whose end says so."""
    return replace(about_task(task), event="cancelled", reason=reason.value)
