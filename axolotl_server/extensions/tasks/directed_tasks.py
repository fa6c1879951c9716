"""Tasks as an extension of the stateless revision: the server decides whether a call becomes a task."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Detached, MissingCapability, ToolError
from axolotl_core.protocol.versions import STATELESS_REVISIONS
from axolotl_core.protocol.wire import encode
from axolotl_core.task_engine import TASKS_EXTENSION, ITaskListener, TaskChange, TaskRecord
from axolotl_server.extensions.tasks.task_questions import checked_answers
from axolotl_server.extensions.tasks.task_service import TaskService
from axolotl_server.features.tools import ToolMethods
from axolotl_server.protocol.eras.era import IEra, Method, Row
from axolotl_server.protocol.params import read_params
from axolotl_server.protocol.request import Request
from axolotl_server.protocol.subscriptions import Subscriptions

TOPIC: Final = "taskIds"
"""The member of `subscriptions/listen` that names tasks."""


class _UpdateParams(msgspec.Struct, rename="camel"):
    input_responses: dict[str, Raw]


class DirectedTasks(ITaskListener):
    """`tools/call` that may return a task, and the methods for such tasks."""

    def __init__(self, tools: ToolMethods, service: TaskService, subscriptions: Subscriptions) -> None:
        self._tools = tools
        self._service = service
        self._subscriptions = subscriptions
        service.listeners.append(self)

    @property
    def rows(self) -> Iterable[Row]:
        """The methods that the extension adds."""
        return (
            Row("tasks/get", STATELESS_REVISIONS, None, self.get),
            Row("tasks/update", STATELESS_REVISIONS, None, self.update),
            Row("tasks/cancel", STATELESS_REVISIONS, None, self.cancel),
        )

    def follows(self, task_id: str) -> bool:
        return self._subscriptions.follows(TOPIC, task_id)

    def hears(self, task_id: str) -> bool:
        """Return False: tasks of the extension send no messages."""
        return False

    def task_changed(self, change: TaskChange) -> None:
        """Notify the clients that subscribed to a task."""
        if change.is_status and self.follows(change.record.id):
            described = self.detail(change.record)
            self._subscriptions.publish(TOPIC, change.record.id, "notifications/tasks", described)

    async def call(self, call_next: Method, request: Request) -> bytes | None:
        """Call a tool in its request, or as a task if the tool supports tasks and the client declared the extension.

        A call that began by asking in rounds continues in rounds.
        """
        target = self._tools.target_of(request)
        support = "forbidden" if target.binding is None else target.binding.spec.tool.task_support
        if support == "detached":  # it becomes a task where its code says so
            request.detachable = request.extension(TASKS_EXTENSION) is not None
            try:
                return await call_next(request)
            except Detached:
                return await self._begin(request, is_admitted=True)
        if support == "forbidden" or (support == "optional" and request.head.params.request_state is not UNSET):
            return await call_next(request)
        if request.extension(TASKS_EXTENSION) is not None:
            await self._tools.checked(target, request)
            return await self._begin(request)
        if support == "required":
            raise _missing_extension()
        return await call_next(request)

    async def get(self, request: Request) -> bytes:
        """Return the state of a task, with its questions or its result."""
        return encode(self.detail(await self._find(request)))[:-1] + request.era.tail

    async def update(self, request: Request) -> bytes:
        """Take some or all answers to the questions of a task; answers to other questions are ignored."""
        record = await self._find(request)
        responses = read_params(request.data, _UpdateParams).input_responses
        answers = checked_answers(record.id, record.questions, responses, self._service.runner.checks)
        if answers:
            with self._service.reachable():
                await self._service.answer(request, record, answers)
        return _acknowledgement(request.era)

    async def cancel(self, request: Request) -> bytes:
        """Cancel a task; one that has ended does not change."""
        record = await self._find(request)
        with self._service.reachable():
            exchange = request.exchange
            await self._service.cancel(record, CancelReason.CLIENT, exchange.principal, exchange.client_address)
        return _acknowledgement(request.era)

    async def own_tasks(self, request: Request, task_ids: tuple[str, ...]) -> tuple[str, ...]:
        """Choose the tasks that a caller may be notified of."""
        if task_ids and request.extension(TASKS_EXTENSION) is None:
            raise _missing_extension()
        owner, engine = self._service.owner(request, "directed"), self._service.engine
        with self._service.reachable():
            records = await engine.read(task_ids, owner)
        visible = {record.id for record in await self._service.visible(records, request)}
        return tuple(task_id for task_id in task_ids if task_id in visible)

    def detail(self, record: TaskRecord) -> dict[str, Any]:
        """Describe a task with its questions, its result or its error."""
        described = self._service.describe(record, unit="Ms")
        outcome = record.outcome
        if record.status == "input_required":
            described["inputRequests"] = {
                key: {"method": question.method, "params": question.params}
                for key, question in record.questions.items()
            }
        if outcome is not None and outcome.result is not None:
            described["result"] = Raw(outcome.result)
        if outcome is not None and outcome.error is not None:
            error = outcome.error
            described["error"] = {"code": error.code, "message": error.message}
            if error.data is not None:
                described["error"]["data"] = error.data
        return described

    async def _begin(self, request: Request, *, is_admitted: bool = False) -> bytes:
        try:
            record = await self._service.submit(request, "directed", None, is_admitted=is_admitted)
        except ToolError as error:
            return self._tools.reply_to_failure(error, request)
        begun = encode(self._service.describe(record, unit="Ms"))
        return begun[:-1] + request.era.tail.replace(b'"complete"', b'"task"', 1)

    async def _find(self, request: Request) -> TaskRecord:
        if request.extension(TASKS_EXTENSION) is None:
            raise _missing_extension()
        return await self._service.find(request, "directed")


def _acknowledgement(era: IEra) -> bytes:
    return b"{" + era.tail.removeprefix(b",")


def _missing_extension() -> MissingCapability:
    message = f"This needs a client with the extension {TASKS_EXTENSION}"
    return MissingCapability(message, {"extensions": {TASKS_EXTENSION: {}}})
