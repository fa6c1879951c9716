"""The list of tasks for the console: the latest tasks of all callers, without their owners."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.protocol.identity import Principal
from axolotl_core.task_engine import TaskRecord, TasksUnavailable
from axolotl_server.extensions.tasks.task_service import TaskService
from axolotl_server.http.asgi import HttpRefusal

_MAX_SHOWN: Final = 100
_MAX_MESSAGE: Final = 200


class TaskList:
    """Lists and cancels tasks, wherever they run.

    A task is named by its number and a digest, because its ID is all that protects the task of an anonymous caller.
    """

    def __init__(self, service: TaskService) -> None:
        self._service = service

    async def describe(self, query: Mapping[str, str], operator: Principal) -> dict[str, Any]:
        """Describe the latest tasks, the latest first; refuse with 503 if the store cannot be reached."""
        try:
            records = await self._service.engine.latest(_MAX_SHOWN)
        except TasksUnavailable as error:
            raise _unavailable(error) from None
        return {"tasks": [_described(record) for record in records], "durable": self._service.engine.durable}

    async def cancel(self, query: Mapping[str, str], operator: Principal) -> dict[str, Any]:
        """Cancel the task with a number and a digest; refuse with 404 if there is none."""
        number = query.get("number", "")
        if not number.isascii() or not number.isdecimal() or len(number) > 18:
            raise HttpRefusal(400, "Bad request: the console names a task by its number and id")
        try:
            for record in await self._service.engine.of(None, int(number) - 1, 1):
                if record.number == int(number) and _digest(record) == query.get("id"):
                    return _described(await self._service.cancel(record, CancelReason.OPERATOR, operator))
        except TasksUnavailable as error:
            raise _unavailable(error) from None
        raise HttpRefusal(404, "Not found: the console knows no such task; it has expired, or never existed")


def _described(record: TaskRecord) -> dict[str, Any]:
    return {
        "number": record.number,
        "id": _digest(record),
        "tool": record.tool,
        "status": record.status,
        "runs": record.run,
        "created_at": record.created_at,
        "message": None if record.message is None else record.message[:_MAX_MESSAGE],
        "open": record.open,
    }


def _digest(record: TaskRecord) -> str:
    return sha256(record.id.encode()).hexdigest()[:8]


def _unavailable(error: TasksUnavailable) -> HttpRefusal:
    return HttpRefusal(503, f"Service unavailable: the console cannot reach the store of tasks: {error}")
