"""The layers around tools that run as tasks, those of the submission and of each run, and what the audit records."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from secrets import token_hex
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke, Layer, fold
from axolotl_core.policies.audit import AuditRecord
from axolotl_core.task_engine import TaskRecord
from axolotl_server.access.authorization import Authorization
from axolotl_server.calls.binding import Binder, Layers, ToolBinding
from axolotl_server.layers.audit import AuditLayer, Describe, ended_record
from axolotl_server.layers.call_ending import Ending, ending_of
from axolotl_server.layers.concurrency import Bulkhead, ConcurrencyLayer, within
from axolotl_server.layers.deadline import validation
from axolotl_server.layers.quota import QuotaLayer
from axolotl_server.protocol.request import Request

if TYPE_CHECKING:
    from axolotl_server.layers.idempotency.work_once import MakeKey


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


Submit: TypeAlias = Callable[[Call], Awaitable[TaskRecord]]
"""Submits the task of a call that has passed all checks."""

WaitingRun: TypeAlias = Callable[[Call], AbstractContextManager[None]]
"""Makes the block the time in which the run of a task waits for a slot; it is left with an error if it gets none."""


class RunConcurrencyLayer(ILayer):
    """Takes the slots of the server and the tool set for runs of stored tasks; the queue limits the tool itself.

    A run waits until it gets them: it is in no hurry, and an error would end its task.
    """

    def __init__(self, slots: ConcurrencyLayer, waiting: WaitingRun) -> None:
        self._slots = slots
        self._waiting = waiting

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        invoke = call_next
        for bulkhead in self._slots.shared(spec):
            invoke = within(bulkhead, invoke, self._wait)
        return invoke

    async def _wait(self, bulkhead: Bulkhead, call: Call) -> None:
        with self._waiting(call):
            await bulkhead.wait_patiently()


def run_layers(layers: Layers, find_task: FindTask, waiting: WaitingRun | None) -> Layers:
    """Choose the layers of a run: a quota is charged once, at the submission.

    `waiting` is given if there is a queue, which limits the runs of each tool by itself.
    """
    audit = next((layer for layer in layers.outer if isinstance(layer, AuditLayer)), None)
    records = None if audit is None else RunAuditLayer(audit, find_task)

    def of_run(layer: Layer) -> Layer:
        if audit is not None and records is not None:
            if layer is audit:
                return records
            if layer == audit.announce:
                return records.announce
        if isinstance(layer, ConcurrencyLayer) and waiting is not None:
            return RunConcurrencyLayer(layer, waiting)
        return layer

    inner = (layer for layer in layers.inner if not isinstance(layer, QuotaLayer))
    return Layers(tuple(map(of_run, layers.outer)), tuple(map(of_run, inner)))


class _Submission(Call, eq=False, kw_only=True):
    """A call that is to become a task."""

    submit: Submit


class TaskLayers:
    """Binds tools for runs, and admits calls before their tasks exist."""

    def __init__(self, layers: Layers, run_binder: Binder) -> None:
        self._record = tuple(accepting(layer) for layer in layers.outer if isinstance(layer, AuditLayer))
        self._checks = tuple(
            layer for layer in layers.inner if isinstance(layer, Authorization | QuotaLayer) or layer is validation
        )
        self._run_binder = run_binder
        self._admissions: dict[bool, WeakKeyDictionary[ToolBinding, Invoke]] = {
            is_admitted: WeakKeyDictionary() for is_admitted in (False, True)
        }
        self._bindings: WeakKeyDictionary[ToolBinding, ToolBinding] = WeakKeyDictionary()
        self._keys: WeakKeyDictionary[ToolBinding, MakeKey] = WeakKeyDictionary()

    def bind(self, binding: ToolBinding) -> ToolBinding:
        """Return the binding of a tool for runs of its tasks."""
        if binding not in self._bindings:
            self._bindings[binding] = self._run_binder.bind_tool(binding.spec.tool)
        return self._bindings[binding]

    async def admit(self, request: Request, submit: Submit, *, is_admitted: bool) -> TaskRecord:
        """Record a call and submit its task; unless it was admitted before, check it and charge quotas first.

        Raises the ToolError that the client gets.
        """
        target, task = request.target, asyncio.current_task()
        assert target is not None
        assert target.binding is not None
        assert task is not None
        admissions = self._admissions[is_admitted]
        if target.binding not in admissions:
            layers = self._record if is_admitted else (*self._record, *self._checks)
            admissions[target.binding], _ = fold(layers, target.binding.spec, _submit)
        call = _Submission(
            request.head.id,  # type: ignore[arg-type]  # a message without an ID reaches no method
            request,
            request.exchange.principal,
            uri="",
            spec=target.binding.spec,
            raw=target.raw,
            task=task,
            submit=submit,
        )
        record: TaskRecord = await admissions[target.binding](call)
        return record

    def key_of(self, binding: ToolBinding, call: Call) -> bytes | None:
        """Return the key that makes two open tasks one, if the tool is idempotent and the arguments were checked."""
        rule = binding.spec.tool.idempotency
        if rule is None or call.arguments is None:
            return None
        if binding not in self._keys:
            from axolotl_server.layers.idempotency.work_once import key_compiler  # few tools need it

            self._keys[binding] = key_compiler(rule, binding.spec)
        key = self._keys[binding](call)
        return None if key is None else sha256("\n".join(key).encode()).digest()


async def _submit(call: Call) -> Any:
    assert isinstance(call, _Submission)
    return await call.submit(call)
