"""Tasks of the last revision with a handshake: the client asks for one."""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InternalError, InvalidArguments, InvalidParams, MethodNotFound, ProtocolError, ToolError
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.result_keys import error_data
from axolotl_core.protocol.versions import REVISIONS
from axolotl_core.protocol.wire import decode_cursor, encode, encode_cursor
from axolotl_core.task_engine import ITaskListener, TaskChange, TaskError, TaskRecord
from axolotl_core.tools.tool import TaskSupport
from axolotl_server.extensions.tasks.task_followers import TaskFollower, Waiter, mark_related
from axolotl_server.extensions.tasks.task_service import TaskService
from axolotl_server.features.catalogue import PAGE_SIZE
from axolotl_server.features.tools import ToolMethods
from axolotl_server.protocol.eras.era import Method, Row
from axolotl_server.protocol.params import ListParams, read_params
from axolotl_server.protocol.replies import reply_to_nobody
from axolotl_server.protocol.request import Request


class _TaskRequest(msgspec.Struct):
    ttl: Annotated[float, Meta(ge=0)] | None = None
    """The time to live in milliseconds."""


class _CallParams(msgspec.Struct):
    name: str
    task: _TaskRequest | UnsetType = UNSET


class StoredError(ProtocolError):
    """The error that a task ended with, with the code that it had."""

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message, data=error.data)
        self.code = error.code  # type: ignore[misc]  # other errors have the code of their class


class RequestedTasks(ITaskListener):
    """`tools/call` that can be asked for a task, and the methods for such tasks."""

    def __init__(self, tools: ToolMethods, service: TaskService) -> None:
        self._tools = tools
        self._service = service
        self._followers: dict[str, TaskFollower] = {}
        """The followers of open tasks, by the ID of the task."""
        service.listeners.append(self)

    @property
    def rows(self) -> Iterable[Row]:
        """The methods that the revision with such tasks adds."""
        has_tasks = [revision for revision in REVISIONS if revision.tasks]
        return (
            Row("tasks/get", has_tasks, None, self.get),
            Row("tasks/result", has_tasks, None, self.result),
            Row("tasks/list", has_tasks, None, self.list),
            Row("tasks/cancel", has_tasks, None, self.cancel),
        )

    async def call(self, call_next: Method, request: Request) -> bytes | None:
        """Call a tool in its request, or as a task if the client asks for one and the tool supports tasks."""
        if request.head.params.name is UNSET:
            return await call_next(request)
        params = read_params(request.data, _CallParams)
        target = self._tools.target_of(request)
        if target.binding is None:
            return await call_next(request)
        support: TaskSupport = target.binding.spec.tool.task_support
        if params.task is UNSET:
            if support == "required":
                raise MethodNotFound(f"Tool {params.name} runs only as a task: send params.task")
            return await call_next(request)
        if support in ("forbidden", "detached"):
            raise MethodNotFound(f"Tool {params.name} does not run as a task: send the call without params.task")
        await self._tools.checked(target, request)
        return await self._begin(request, params.task)

    def follows(self, task_id: str) -> bool:
        return task_id in self._followers

    def hears(self, task_id: str) -> bool:
        follower = self._followers.get(task_id)
        return follower is not None and follower.hears

    def task_changed(self, change: TaskChange) -> None:
        """Carry a change to the client of a task."""
        follower = self._followers.get(change.record.id)
        if follower is None:
            return
        if not change.record.open:
            del self._followers[change.record.id]
        follower.change(change)

    def silence(self) -> None:
        """Send nothing more about tasks: the server stops, and connections may be gone."""
        for follower in self._followers.values():
            follower.silent = True

    async def get(self, request: Request) -> bytes:
        """Return the state of a task."""
        record = await self._service.find(request, "requested")
        follower = self._followers.get(record.id)
        if follower is not None:
            follower.ask_again()
        return encode(self._service.describe(record))

    async def result(self, request: Request) -> bytes | None:
        """Wait for the end of a task and return the result of its call; None if the client stops waiting."""
        record = await self._service.find(request, "requested")
        if record.open:
            follower = self._follow(record, request)
            reason = await self._wait(follower, request)
            record = follower.record
            if record.open:
                if reason is CancelReason.SHUTDOWN:
                    raise InternalError("The server is shutting down", data={"reason": reason})
                return reply_to_nobody(request, reason)
        outcome = record.outcome
        if outcome is not None and outcome.error is not None:
            raise StoredError(outcome.error)
        if outcome is None or outcome.result is None:
            raise InvalidParams(f"The task has no result: it was cancelled. {record.message or ''}".rstrip())
        return encode(mark_related(msgspec.json.decode(outcome.result, type=dict[str, Raw]), record.id))

    async def list(self, request: Request) -> bytes:
        """List the tasks of the caller; a page has fewer than usual if the caller may not use the tools of some."""
        cursor = read_params(request.data, ListParams).cursor
        after = 0 if cursor is None else decode_cursor("tasks", cursor)
        with self._service.reachable():
            records = await self._service.engine.of(self._service.owner(request, "requested"), after, PAGE_SIZE + 1)
        visible = await self._service.visible(records[:PAGE_SIZE], request)
        result: dict[str, object] = {"tasks": [self._service.describe(record) for record in visible]}
        if len(records) > PAGE_SIZE:
            result["nextCursor"] = encode_cursor("tasks", records[PAGE_SIZE - 1].number)
        return encode(result)

    async def cancel(self, request: Request) -> bytes:
        """Cancel a task that has not ended."""
        record = await self._service.find(request, "requested")
        if not record.open:
            raise InvalidParams(f"The task has already ended: it is {record.status}")
        with self._service.reachable():
            exchange = request.exchange
            record = await self._service.cancel(
                record, CancelReason.CLIENT, exchange.principal, exchange.client_address
            )
        return encode(self._service.describe(record))

    async def _begin(self, request: Request, requested: _TaskRequest) -> bytes:
        seconds = None if requested.ttl is None else requested.ttl / 1000
        try:
            record = await self._service.submit(request, "requested", seconds)
        except InvalidArguments as error:
            raise InvalidParams(error.message) from None
        except ToolError as error:
            raise InternalError(error.message, data=error_data(error.meta)) from None
        self._follow(record, request)
        return encode({"task": self._service.describe(record)})

    def _follow(self, record: TaskRecord, request: Request) -> TaskFollower:
        """Follow an open task on behalf of its client."""
        follower = self._followers.get(record.id)
        if follower is None:
            assert request.connection is not None
            follower = self._followers[record.id] = TaskFollower(
                record,
                request.connection,
                self._service.describe,
                partial(self._service.answer, request),
                over_http=request.exchange.headers is not None,
                alone=request.connection.forward is None or not self._service.engine.durable,
                call=_RunningCall(self._service, record, request.exchange.principal),
                audience=self._service.audience(record, request),
            )
            follower.change(TaskChange(record, is_status=False))
        return follower

    async def _wait(self, follower: TaskFollower, request: Request) -> CancelReason | None:
        """Wait for the end of a task or of the request, and return the reason why the request ended."""
        waiter = Waiter(request.exchange, self._service.spec_of(follower.record))
        assert request.connection is not None
        assert request.head.id is not UNSET
        with request.connection.running(request.head.id, waiter):
            follower.attach(waiter)
            request.exchange.watch(waiter.lose)
            try:
                await asyncio.wait((follower.ended, waiter.stopped), return_when=asyncio.FIRST_COMPLETED)
            finally:
                reason = waiter.reason
                follower.detach(waiter)
        return reason


class _RunningCall:
    """The call of a task, if it runs in this process."""

    def __init__(self, service: TaskService, record: TaskRecord, principal: Principal) -> None:
        self._runner = service.runner
        self._task_id = record.id
        self.principal = principal
        self.spec = service.spec_of(record)

    def stop(self, reason: CancelReason) -> None:
        self._runner.stop(self._task_id, reason)
