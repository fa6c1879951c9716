"""Tasks as the last revision with a handshake has them: the client asks for one."""

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
from axolotl_server.tasks.detached_call import DetachedExchange, Waiter, detached, related, work
from axolotl_server.tasks.task import Owner, Task, TaskStore, copy_error, owner_of
from axolotl_server.tasks.task_questions import AskingInTask


class _Wish(msgspec.Struct):
    ttl: Annotated[float, Meta(ge=0)] | None = None
    """In milliseconds."""


class _CallParams(msgspec.Struct):
    name: str
    task: _Wish | UnsetType = UNSET


class _TaskParams(msgspec.Struct, rename="camel"):
    task_id: str


class RequestedTasks:
    """`tools/call` with a wish for a task, and the methods that follow such a task."""

    def __init__(self, tools: ToolMethods, store: TaskStore) -> None:
        self._tools = tools
        self._store = store
        self._exchanges: dict[str, DetachedExchange] = {}
        """How the tasks that run speak, by their ids."""

    @property
    def methods(self) -> Methods:
        """What this revision has instead of, and besides, the ordinary methods."""
        return {
            "tools/call": self.call,
            "tasks/get": self.get,
            "tasks/result": self.result,
            "tasks/list": self.list,
            "tasks/cancel": self.cancel,
        }

    async def call(self, request: Request) -> bytes | None:
        """Call a tool, as a task if the client wishes so and the tool lets it."""
        if request.head.params.name is UNSET:
            return await self._tools.call(request)
        params = read_params(request.data, _CallParams)
        target = request.target = request.target or self._tools.locate(request)
        if target.binding is None:
            return await self._tools.call(request)
        support: TaskSupport = target.binding.spec.tool.task_support
        if params.task is UNSET:
            if support == "required":
                raise MethodNotFound(f"Tool {params.name} runs as a task only: send params.task")
            return await self._tools.call(request)
        if support == "forbidden":
            raise MethodNotFound(f"Tool {params.name} does not run as a task: send the call without params.task")
        await self._tools.checked(target, request)
        return self._begin(request, params.task)

    async def get(self, request: Request) -> bytes:
        """Tell the state of a task."""
        return encode(self._store.describe(self._find(request)))

    async def result(self, request: Request) -> bytes | None:
        """Wait for the end of a task and give what the call would have given; None if the client waits no longer."""
        task = self._find(request)
        reason = await self._wait(task, request)
        if task.open:
            _unanswered(reason, request)
            return None
        if task.error is not None:
            raise copy_error(task.error)
        if task.result is None:
            raise InvalidParams(f"The task has no result: it was cancelled. {task.message or ''}".rstrip())
        return encode(related(msgspec.json.decode(task.result, type=dict[str, Raw]), task))

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
        """End a task that has not ended."""
        task = self._find(request)
        if not task.open:
            raise InvalidParams(f"The task has ended already: it is {task.status}")
        task.cancel(CancelReason.CLIENT)
        return encode(self._store.describe(task))

    def _begin(self, request: Request, wish: _Wish) -> bytes:
        connection = request.connection
        assert connection is not None
        seconds = None if wish.ttl is None else wish.ttl / 1000
        try:
            task = self._store.create(_owner(request), seconds, self._teller(connection))
        except Overloaded as error:
            raise InternalError(error.message, data=error.meta) from None
        exchange = self._exchanges[task.id] = DetachedExchange(task, request.exchange, connection)
        self._store.run(self._work(task, detached(request, task, exchange, AskingInTask(task, request.era.asking))))
        return encode({"task": self._store.describe(task)})

    async def _work(self, task: Task, request: Request) -> None:
        try:
            await work(task, request, self._tools.call, _finish)
        finally:
            del self._exchanges[task.id]

    async def _wait(self, task: Task, request: Request) -> CancelReason | None:
        """Wait for the end of a task, or of the request; gives the reason of the latter."""
        exchange = self._exchanges.get(task.id)
        if exchange is None or not task.open:
            return None
        waiter = Waiter(request.exchange)
        assert request.connection is not None
        assert request.head.id is not UNSET
        with request.connection.running(request.head.id, waiter):
            exchange.attach(waiter)
            request.exchange.watch(_Watch(waiter))
            try:
                await asyncio.wait((task.ended, waiter.stopped), return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped = waiter.stopped.result() if waiter.stopped.done() else None
                exchange.detach(waiter)
        return stopped

    def _find(self, request: Request) -> Task:
        return self._store.find(read_params(request.data, _TaskParams).task_id, _owner(request))

    def _teller(self, connection: Connection) -> Callable[[Task], object]:
        """Tell the client of each change."""

        def tell(task: Task) -> None:
            if not task.silent:
                connection.send(notification("notifications/tasks/status", self._store.describe(task)))

        return tell


def _owner(request: Request) -> Owner:
    return owner_of("requested", request.exchange.principal, request.connection)


def _unanswered(reason: CancelReason | None, request: Request) -> None:
    """End a request that waits no longer; where the transport demands a response, or somebody still listens, say so."""
    if reason is CancelReason.SHUTDOWN:
        raise InternalError("The server is shutting down", data={"reason": reason})
    if request.exchange.headers is not None:
        raise RequestCancelled


def _finish(task: Task, result: bytes, is_error: bool) -> None:
    """Here a result that is an error means that the task failed."""
    task.end("failed" if is_error else "completed", result=result, message="The tool failed" if is_error else None)


class _Watch:
    """Tells a waiting request that its connection has gone, which need not be its end."""

    def __init__(self, waiter: Waiter) -> None:
        self._waiter = waiter

    def stop(self, reason: CancelReason) -> None:
        self._waiter.lose()
