"""Tasks as the last revision with a handshake has them: the client asks for one."""

from collections.abc import Callable

import msgspec
from msgspec import UNSET, UnsetType

from axolotl_core.errors import InvalidParams, MethodNotFound, Overloaded
from axolotl_core.protocol.paging import decode_cursor, encode_cursor
from axolotl_core.protocol.wire import encode, notification
from axolotl_core.tool import TaskSupport
from axolotl_server.catalogues.tools import ToolCatalogue
from axolotl_server.eras.base import Methods
from axolotl_server.methods.params import ListParams, read_params
from axolotl_server.methods.tools import ToolMethods
from axolotl_server.peer import Connection
from axolotl_server.request import Request
from axolotl_server.settings import TaskSettings
from axolotl_server.tasks.asking import AskingVisibly
from axolotl_server.tasks.detached import RELATED_TASK_KEY, DetachedExchange, detach
from axolotl_server.tasks.store import TaskStore
from axolotl_server.tasks.task import Owner, Task, owner_of

__all__ = ["RequestedTasks"]

_PAGE_SIZE = 100


class _Wish(msgspec.Struct):
    ttl: float | None = None
    """In milliseconds."""


class _CallParams(msgspec.Struct):
    name: str
    task: _Wish | UnsetType = UNSET


class _TaskParams(msgspec.Struct, rename="camel"):
    task_id: str


class _Outcome(msgspec.Struct, rename="camel"):
    is_error: bool = False


class RequestedTasks:
    """`tools/call` with a wish for a task, and the methods that follow such a task."""

    def __init__(self, tools: ToolMethods, catalogue: ToolCatalogue, store: TaskStore, settings: TaskSettings) -> None:
        self._tools = tools
        self._catalogue = catalogue
        self._store = store
        self._settings = settings
        self._exchanges: dict[str, DetachedExchange] = {}

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
        support: TaskSupport = self._catalogue.by_name[params.name].spec.tool.task_support
        if params.task is UNSET:
            if support == "required":
                raise MethodNotFound(f"Tool {params.name} runs as a task only: send params.task")
            return await self._tools.call(request)
        if support == "forbidden":
            raise MethodNotFound(f"Tool {params.name} does not run as a task: send the call without params.task")
        return self._begin(request, params.task)

    async def get(self, request: Request) -> bytes:
        """Tell the state of a task."""
        return encode(self._describe(self._find(request)))

    async def result(self, request: Request) -> bytes:
        """Wait for the end of a task and give what the call would have given."""
        task = self._find(request)
        exchange = self._exchanges.get(task.id)
        if exchange is not None:
            exchange.attach(request.exchange)
        try:
            await task.ended.wait()
        finally:
            if exchange is not None:
                exchange.attach(None)
        if task.error is not None:
            raise task.error
        if task.result is None:
            raise InvalidParams("The task was cancelled: it has no result")
        return _related(bytes(task.result), task)

    async def list(self, request: Request) -> bytes:
        """List the tasks of the caller."""
        cursor = read_params(request.data, ListParams).cursor
        start = 0 if cursor is None else decode_cursor("tasks", cursor)
        tasks = tuple(self._store.of(_owner(request)))
        result: dict[str, object] = {"tasks": [self._describe(task) for task in tasks[start : start + _PAGE_SIZE]]}
        if start + _PAGE_SIZE < len(tasks):
            result["nextCursor"] = encode_cursor("tasks", start + _PAGE_SIZE)
        return encode(result)

    async def cancel(self, request: Request) -> bytes:
        """End a task that has not ended."""
        task = self._find(request)
        if not task.open:
            raise InvalidParams(f"The task has ended already: it is {task.status}")
        task.cancel()
        return encode(self._describe(task))

    def _begin(self, request: Request, wish: _Wish) -> bytes:
        connection = request.connection
        assert connection is not None
        seconds = None if wish.ttl is None else max(0.0, wish.ttl / 1000)
        try:
            task = self._store.create(_owner(request), seconds, self._teller(connection))
        except Overloaded as error:
            return self._tools.tell(error, request)
        exchange = self._exchanges[task.id] = DetachedExchange(task, request.exchange, speak=True)
        asking = AskingVisibly(task, request.era.asking)
        detach(request, task, exchange, asking=asking, run=self._tools.call, finish=_finish)
        assert task.work is not None
        task.work.add_done_callback(lambda _: self._exchanges.pop(task.id, None))
        return encode({"task": self._describe(task)})

    def _find(self, request: Request) -> Task:
        return self._store.find(read_params(request.data, _TaskParams).task_id, _owner(request))

    def _describe(self, task: Task) -> dict[str, object]:
        described: dict[str, object] = {
            "taskId": task.id,
            "status": task.status,
            "createdAt": task.created_at,
            "lastUpdatedAt": task.updated_at,
            "ttl": round(task.ttl_seconds * 1000),
            "pollInterval": round(self._settings.poll_interval_seconds * 1000),
        }
        return described if task.message is None else {**described, "statusMessage": task.message}

    def _teller(self, connection: Connection) -> Callable[[Task], object]:
        """Tell the client of each change."""
        return lambda task: connection.send(notification("notifications/tasks/status", self._describe(task)))


def _owner(request: Request) -> Owner:
    return owner_of(request.exchange.principal, request.connection)


def _finish(task: Task, result: bytes) -> None:
    """Here a result that is an error means that the task failed."""
    failed = msgspec.json.decode(result, type=_Outcome).is_error
    task.end("failed" if failed else "completed", result=result, message="The tool failed" if failed else None)


def _related(result: bytes, task: Task) -> bytes:
    """Mark a result as that of a task."""
    content = msgspec.json.decode(result)
    content.setdefault("_meta", {})[RELATED_TASK_KEY] = {"taskId": task.id}
    return encode(content)
