"""Tasks of the last revision with a handshake: the client asks for one."""

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import (
    InternalError,
    InvalidParams,
    MethodNotFound,
    Overloaded,
    RequestCancelled,
)
from axolotl_core.protocol.wire import decode_cursor, encode, encode_cursor, notification
from axolotl_core.tools.tool import TaskSupport
from axolotl_server.eras.era import Methods
from axolotl_server.features.tools import ToolMethods
from axolotl_server.messages.connection import Connection
from axolotl_server.messages.params import ListParams, read_params
from axolotl_server.messages.request import Request
from axolotl_server.tasks.detached_call import DetachedExchange, Waiter, detach_request, mark_related, work
from axolotl_server.tasks.task import Owner, Task, TaskStore, copy_error, owner_of
from axolotl_server.tasks.task_questions import AskingInTask


class _TaskRequest(msgspec.Struct):
    ttl: Annotated[float, Meta(ge=0)] | None = None
    """The time to live in milliseconds."""


class _CallParams(msgspec.Struct):
    name: str
    task: _TaskRequest | UnsetType = UNSET


class _TaskParams(msgspec.Struct, rename="camel"):
    task_id: str


class RequestedTasks:
    """`tools/call` that can be asked for a task, and the methods for such tasks."""

    def __init__(self, tools: ToolMethods, store: TaskStore) -> None:
        self._tools = tools
        self._store = store
        self._exchanges: dict[str, DetachedExchange] = {}
        """The exchanges of running tasks, by the ID of the task."""

    @property
    def methods(self) -> Methods:
        """The methods that this revision replaces and adds."""
        return {
            "tools/call": self.call,
            "tasks/get": self.get,
            "tasks/result": self.result,
            "tasks/list": self.list,
            "tasks/cancel": self.cancel,
        }

    async def call(self, request: Request) -> bytes | None:
        """Call a tool, as a task if the client asks for one and the tool supports tasks."""
        if request.head.params.name is UNSET:
            return await self._tools.call(request)
        params = read_params(request.data, _CallParams)
        target = request.target = request.target or self._tools.locate(request)
        if target.binding is None:
            return await self._tools.call(request)
        support: TaskSupport = target.binding.spec.tool.task_support
        if params.task is UNSET:
            if support == "required":
                raise MethodNotFound(f"Tool {params.name} runs only as a task: send params.task")
            return await self._tools.call(request)
        if support == "forbidden":
            raise MethodNotFound(f"Tool {params.name} does not run as a task: send the call without params.task")
        await self._tools.checked(target, request)
        return self._begin(request, params.task)

    async def get(self, request: Request) -> bytes:
        """Give the state of a task."""
        return encode(self._store.describe(self._find(request)))

    async def result(self, request: Request) -> bytes | None:
        """Wait for the end of a task and give the result of its call; None if the client stops waiting."""
        task = self._find(request)
        reason = await self._wait(task, request)
        if task.open:
            _end_waiting(reason, request)
            return None
        if task.error is not None:
            raise copy_error(task.error)
        if task.result is None:
            raise InvalidParams(f"The task has no result: it was cancelled. {task.message or ''}".rstrip())
        return encode(mark_related(msgspec.json.decode(task.result, type=dict[str, Raw]), task))

    async def list(self, request: Request) -> bytes:
        """List the tasks of the caller."""
        cursor = read_params(request.data, ListParams).cursor
        after = 0 if cursor is None else decode_cursor("tasks", cursor)
        size = request.era.settings.page_size
        tasks = tuple(islice(self._store.of(_owner(request), after), size + 1))
        result: dict[str, object] = {"tasks": [self._store.describe(task) for task in tasks[:size]]}
        if len(tasks) > size:
            result["nextCursor"] = encode_cursor("tasks", tasks[size - 1].number)
        return encode(result)

    async def cancel(self, request: Request) -> bytes:
        """Cancel a task that has not ended."""
        task = self._find(request)
        if not task.open:
            raise InvalidParams(f"The task has already ended: it is {task.status}")
        task.cancel(CancelReason.CLIENT)
        return encode(self._store.describe(task))

    def _begin(self, request: Request, requested: _TaskRequest) -> bytes:
        connection = request.connection
        assert connection is not None
        seconds = None if requested.ttl is None else requested.ttl / 1000
        try:
            notify = self._notifier(connection)
            task = self._store.create(_owner(request), seconds, notify, share=request.exchange.share)
        except Overloaded as error:
            raise InternalError(error.message, data=error.meta) from None
        exchange = self._exchanges[task.id] = DetachedExchange(task, request.exchange, connection)
        detached = detach_request(request, task, exchange, AskingInTask(task, request.era.asking))
        self._store.run(self._work(task, detached))
        return encode({"task": self._store.describe(task)})

    async def _work(self, task: Task, request: Request) -> None:
        try:
            await work(task, request, self._tools.call, _finish)
        finally:
            del self._exchanges[task.id]

    async def _wait(self, task: Task, request: Request) -> CancelReason | None:
        """Wait for the end of a task or of the request, and give the reason why the request ended."""
        exchange = self._exchanges.get(task.id)
        if exchange is None or not task.open:
            return None
        waiter = Waiter(request.exchange)
        assert request.connection is not None
        assert request.head.id is not UNSET
        with request.connection.running(request.head.id, waiter):
            exchange.attach(waiter)
            request.exchange.watch(_LossWatch(waiter))
            try:
                await asyncio.wait((task.ended, waiter.stopped), return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped = waiter.stopped.result() if waiter.stopped.done() else None
                exchange.detach(waiter)
        return stopped

    def _find(self, request: Request) -> Task:
        return self._store.find(read_params(request.data, _TaskParams).task_id, _owner(request))

    def _notifier(self, connection: Connection) -> Callable[[Task], object]:
        """Notify the client of each change."""

        def notify(task: Task) -> None:
            if not task.silent:
                connection.send(notification("notifications/tasks/status", self._store.describe(task)))

        return notify


def _owner(request: Request) -> Owner:
    return owner_of("requested", request.exchange.principal, request.connection)


def _end_waiting(reason: CancelReason | None, request: Request) -> None:
    """End a request that no longer waits; an error tells those who still expect a response."""
    if reason is CancelReason.SHUTDOWN:
        raise InternalError("The server is shutting down", data={"reason": reason})
    if request.exchange.headers is not None:
        raise RequestCancelled


def _finish(task: Task, result: bytes, is_error: bool) -> None:
    """In this design a result that is an error means that the task failed."""
    task.end("failed" if is_error else "completed", result=result, message="The tool failed" if is_error else None)


class _LossWatch:
    """Tells a waiting request that its connection is lost, which does not have to end it."""

    def __init__(self, waiter: Waiter) -> None:
        self._waiter = waiter

    def stop(self, reason: CancelReason) -> None:
        self._waiter.mark_lost()
