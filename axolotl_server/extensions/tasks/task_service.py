"""The tasks of a server: submitted through its engine, run by its runner, followed by its clients."""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InternalError, InvalidParams, Refused
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.result_keys import own_meta
from axolotl_core.task_engine import ITaskEngine, ITaskListener, NewTask, TaskChange, TaskRecord, TasksUnavailable
from axolotl_server.execution.outage_log import OutageLog
from axolotl_server.extensions.tasks.engines.task_states import POLL_SECONDS
from axolotl_server.extensions.tasks.task_call import Design, TaskCall, owner_of, share_digest
from axolotl_server.extensions.tasks.task_layers import about_task, cancellation
from axolotl_server.extensions.tasks.task_questions import response_in
from axolotl_server.extensions.tasks.task_runner import TaskOrigin, TaskRunner
from axolotl_server.protocol.connection import Audience
from axolotl_server.protocol.params import read_params
from axolotl_server.protocol.request import Request
from axolotl_server.settings.calls import TaskSettings

if TYPE_CHECKING:
    from axolotl_server.audit.decisions import DecisionLog

_RETRY_SECONDS: Final = 1.0
_RETRY: Final[Mapping[str, Any]] = {"reason": "tasks_unavailable", "retryAfterMs": round(POLL_SECONDS * 1000)}

_log: Final = logging.getLogger("axolotl")


class _TaskParams(msgspec.Struct, rename="camel"):
    task_id: str


class TaskService(ITaskListener):
    """What both designs of tasks have in common."""

    def __init__(
        self, engine: ITaskEngine, runner: TaskRunner, settings: TaskSettings, decisions: "DecisionLog | None" = None
    ) -> None:
        self.engine = engine
        self.runner = runner
        self._settings = settings
        self._catalogue = runner.catalogue
        self._decisions = decisions
        self._outages = OutageLog("The store of tasks", "tasks refused")
        self.listeners: list[ITaskListener] = []
        self._working: asyncio.Task[None] | None = None
        self._is_open = False

    def count_open(self) -> Mapping[tuple[str, str], int]:
        """Count open tasks by tool and status; tools that only other servers have count together, without a name."""
        counts: Counter[tuple[str, str]] = Counter()
        for (tool, status), count in self.engine.counts.open.items():
            counts[tool if self._catalogue.find(tool) is not None else "", status] += count
        return counts

    async def start(self, *, works: bool) -> None:
        """Open the store, once, and begin to run tasks if this process does."""
        if not self._is_open:
            self._is_open = True
            await self.engine.open(self)
        if works and self._working is None:
            self._working = asyncio.ensure_future(self._work())
            await asyncio.sleep(0)  # the engine has its runner when the first task is submitted

    async def _work(self) -> None:
        """Run tasks until this is cancelled; an engine that fails begins again."""
        while True:
            try:
                await self.engine.work(self.runner)
                return
            except Exception:
                _log.exception("taking tasks from the queue failed, trying again in %g seconds", _RETRY_SECONDS)
                await asyncio.sleep(_RETRY_SECONDS)

    def pause(self) -> None:
        """Begin no more tasks; those that run continue."""
        if self._working is not None:
            self._working.cancel()

    async def close(self) -> None:
        """Stop the calls of tasks, and close the store."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait((self._working,))
        if self._is_open:
            await self.engine.close()

    def follows(self, task_id: str) -> bool:
        return any(listener.follows(task_id) for listener in self.listeners)

    def hears(self, task_id: str) -> bool:
        return any(listener.hears(task_id) for listener in self.listeners)

    def task_changed(self, change: TaskChange) -> None:
        for listener in self.listeners:
            listener.task_changed(change)

    async def submit(
        self, request: Request, design: Design, ttl_seconds: float | None, *, is_admitted: bool = False
    ) -> TaskRecord:
        """Submit a call with the requested time to live, limited by the settings; raises Refused if it cannot run.

        A call that has already run in its request is admitted: its quota is charged.
        """
        if not self.engine.durable:
            await self.start(works=True)  # nothing needs to be connected, so the first task starts it
        submit = partial(self._submit, request, design, ttl_seconds)
        return await self.runner.layers.admit(request, submit, is_admitted=is_admitted)

    async def _submit(self, request: Request, design: Design, ttl_seconds: float | None, call: Call) -> TaskRecord:
        assert request.target is not None
        binding = request.target.binding
        assert binding is not None
        stored, longest = self.engine.durable, self._settings.ttl_seconds
        submitter = "" if self.runner.spans is None else self.runner.spans.current()
        reference = call.reference or ""
        task = NewTask(
            self.owner(request, design),
            binding.spec.name,
            TaskCall.of(request, design, stored=stored, submitter=submitter, reference=reference).encode(),
            longest if ttl_seconds is None else min(ttl_seconds, longest),
            share_digest(request.exchange.share),
            self.runner.layers.key_of(binding, call),
            None if stored else TaskOrigin(request.exchange.principal, request.connection),
        )
        try:
            record = await self.engine.submit(task)
        except TasksUnavailable as error:
            self._outages.failed(str(error))
            message = "Tasks cannot be started at the moment; try again"
            raise Refused(message, meta=own_meta(**_RETRY)) from None
        self._outages.recovered()
        return record

    async def find(self, request: Request, design: Design) -> TaskRecord:
        """Find the task that a request names; raise InvalidParams if its caller has none, or may not use its tool."""
        task_id = read_params(request.data, _TaskParams).task_id
        with self.reachable():
            record = await self.engine.find(task_id, self.owner(request, design))
        if record is None or not await self.visible((record,), request):
            raise InvalidParams("Task not found: it has expired, or there is no task with that ID")
        request.exchange.subject = self.spec_of(record)
        if not record.open and record.outcome is None:
            raise InvalidParams("The result of the task was dropped: newer results of its caller took its place")
        return record

    async def answer(self, request: Request, record: TaskRecord, answers: Mapping[str, bytes]) -> None:
        """Store the answers of a caller and record them, or raise TasksUnavailable if either is not possible."""
        decisions = self._decisions
        if decisions is not None:
            try:
                await decisions.admit()
            except Refused as error:
                raise TasksUnavailable(f"The audit log fails: {error.message}") from None
        taken = await self.engine.answer(record.id, record.owner, answers)
        if decisions is not None:
            for key in sorted(taken):
                decisions.answered(request, about_task(record), key, response_in(answers[key]))

    async def cancel(
        self, record: TaskRecord, reason: CancelReason, principal: Principal, client_address: str | None = None
    ) -> TaskRecord:
        """Cancel a task for somebody, record that, and return the task, or raise TasksUnavailable."""
        cancelled = await self.engine.cancel(record.id, record.owner, reason) or record
        if self._decisions is not None and record.open and cancelled.status == "cancelled":
            self._decisions.decided(cancellation(cancelled, reason), principal, client_address)
        return cancelled

    async def visible(self, records: Sequence[TaskRecord], request: Request) -> Sequence[TaskRecord]:
        """Leave out tasks of tools that the caller may not use now, or that are gone.

        It raises InternalError if the authorizer failed.
        """
        authorization = self._catalogue.authorization
        if authorization is None:
            return records
        found = {tool: self._catalogue.find(tool) for tool in {record.tool for record in records}}
        specs = {tool: binding.spec for tool, binding in found.items() if binding is not None}
        allowed = await authorization.allowed(request.exchange.principal, tuple(specs.values()))
        tools = set(itertools.compress(specs, allowed))
        return [record for record in records if record.tool in tools]

    def spec_of(self, record: TaskRecord) -> FeatureSpec | None:
        """Return the tool of a task, None if it is gone."""
        binding = self._catalogue.find(record.tool)
        return None if binding is None else binding.spec

    def audience(self, record: TaskRecord, request: Request) -> Audience | None:
        """Describe who may hear what a task sends; None if access is not restricted."""
        caller = request.exchange.principal
        return None if self._catalogue.authorization is None else Audience(record.tool, caller.scopes, caller.roles)

    def owner(self, request: Request, design: Design) -> bytes:
        """Identify a caller; in the stateless design by its principal, not by its connection."""
        connection = request.connection if design == "requested" else None
        return owner_of(design, request.exchange.principal, connection)

    def describe(self, record: TaskRecord, *, unit: Literal["", "Ms"] = "") -> dict[str, Any]:
        """Describe a task in the form of the protocol; the extension appends the unit to the names of its times."""
        description: dict[str, Any] = {
            "taskId": record.id,
            "status": record.status,
            "createdAt": record.created_at,
            "lastUpdatedAt": record.updated_at,
            f"ttl{unit}": round(record.ttl_seconds * 1000),
            f"pollInterval{unit}": round(POLL_SECONDS * 1000),
        }
        return description if record.message is None else {**description, "statusMessage": record.message}

    @contextmanager
    def reachable(self) -> Iterator[None]:
        """Fail a request that cannot be answered without the store, if the block cannot reach it."""
        try:
            yield
        except TasksUnavailable as error:
            self._outages.failed(str(error))
            raise InternalError("Tasks cannot be read at the moment; try again", data=_RETRY) from None
