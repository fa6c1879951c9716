"""Tasks as an extension of the stateless revision: the server decides whether a call becomes a task."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import MissingCapability, Overloaded, ProtocolError
from axolotl_core.protocol.wire import encode
from axolotl_server.eras.era import IEra, Methods
from axolotl_server.features.tools import ToolMethods
from axolotl_server.layers.deadline import DeadlineTable
from axolotl_server.messages.params import read_params
from axolotl_server.messages.request import Request
from axolotl_server.methods.lifecycle import TASKS_EXTENSION
from axolotl_server.methods.subscriptions import Subscriptions
from axolotl_server.tasks.detached_call import DetachedExchange, detach_request, work
from axolotl_server.tasks.task import Owner, Task, TaskStore, owner_of
from axolotl_server.tasks.task_questions import AskingByTaskUpdate


class _TaskParams(msgspec.Struct, rename="camel"):
    task_id: str


class _UpdateParams(msgspec.Struct, rename="camel"):
    input_responses: dict[str, Raw]


class DirectedTasks:
    """`tools/call` that may return a task, and the methods for such tasks."""

    def __init__(
        self,
        tools: ToolMethods,
        store: TaskStore,
        *,
        deadlines: DeadlineTable,
        subscriptions: Subscriptions,
    ) -> None:
        self._tools = tools
        self._store = store
        self._deadlines = deadlines
        self._subscriptions = subscriptions

    @property
    def methods(self) -> Methods:
        """The methods that the extension replaces and adds."""
        return {
            "tools/call": self.call,
            "tasks/get": self.get,
            "tasks/update": self.update,
            "tasks/cancel": self.cancel,
        }

    async def call(self, request: Request) -> bytes | None:
        """Call a tool, as a task if the tool supports tasks and the client declared the extension.

        A call that began by asking in rounds continues in rounds.
        """
        target = request.target = request.target or self._tools.locate(request)
        support = "forbidden" if target.binding is None else target.binding.spec.tool.task_support
        if support == "forbidden" or (support == "optional" and request.head.params.request_state is not UNSET):
            return await self._tools.call(request)
        if request.extension(TASKS_EXTENSION) is not None:
            await self._tools.checked(target, request)
            return self._begin(request)
        if support == "required":
            raise _missing_extension()
        return await self._tools.call(request)

    async def get(self, request: Request) -> bytes:
        """Give the state of a task, with its questions or its result."""
        task = self._find(request)
        return encode(self.detail(task, request.era))[:-1] + request.era.tail

    async def update(self, request: Request) -> bytes:
        """Take some or all answers to the questions of a task; answers to other questions are ignored."""
        task = self._find(request)
        for key in task.questions.answer(read_params(request.data, _UpdateParams).input_responses):
            task.stop_waiting_for(key)
        return _acknowledgement(request.era)

    async def cancel(self, request: Request) -> bytes:
        """Cancel a task; one that has ended does not change."""
        self._find(request).cancel(CancelReason.CLIENT)
        return _acknowledgement(request.era)

    def own_tasks(self, request: Request, task_ids: tuple[str, ...]) -> tuple[str, ...]:
        """Choose the tasks that a caller may be notified of."""
        if task_ids and request.extension(TASKS_EXTENSION) is None:
            raise _missing_extension()
        own = {task.id for task in self._store.of(_owner(request))}
        return tuple(task_id for task_id in task_ids if task_id in own)

    def detail(self, task: Task, era: IEra) -> dict[str, Any]:
        """Describe a task with its questions, its result or its error."""
        described = self._store.describe(task, unit="Ms")
        if task.status == "input_required":
            described["inputRequests"] = task.questions.describe()
        if task.result is not None:
            described["result"] = task.result
        if task.error is not None:
            described["error"] = _describe_error(task.error, era)
        return described

    def _begin(self, request: Request) -> bytes:
        def notify(task: Task) -> None:
            self._subscriptions.task_changed(task.id, self.detail(task, era))

        era = request.era
        try:
            task = self._store.create(_owner(request), None, notify, share=request.exchange.share)
        except Overloaded as error:
            return self._tools.reply_to_failure(error, request)
        exchange = DetachedExchange(task, request.exchange, None)
        apart = detach_request(request, task, exchange, AskingByTaskUpdate(task, self._deadlines))
        self._store.run(work(task, apart, self._tools.call, _finish))
        return encode(self._store.describe(task, unit="Ms"))[:-1] + era.tail.replace(b'"complete"', b'"task"', 1)

    def _find(self, request: Request) -> Task:
        if request.extension(TASKS_EXTENSION) is None:
            raise _missing_extension()
        return self._store.find(read_params(request.data, _TaskParams).task_id, _owner(request))


def _owner(request: Request) -> Owner:
    """A stateless caller is identified by its principal, not by its connection."""
    return owner_of("directed", request.exchange.principal, None)


def _finish(task: Task, result: bytes, is_error: bool) -> None:
    """In this design a tool that failed has completed: its result tells the failure."""
    task.end("completed", result=result)


def _describe_error(error: ProtocolError, era: IEra) -> dict[str, Any]:
    described: dict[str, Any] = {"code": era.code_of(error), "message": error.message}
    return described if error.data is None else {**described, "data": error.data}


def _acknowledgement(era: IEra) -> bytes:
    return b"{" + era.tail.removeprefix(b",")


def _missing_extension() -> MissingCapability:
    message = f"This needs a client with the extension {TASKS_EXTENSION}"
    return MissingCapability(message, {"extensions": {TASKS_EXTENSION: {}}})
