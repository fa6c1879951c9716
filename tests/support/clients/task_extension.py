"""Tasks of the stateless revision for client libraries that do not support them."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from mcp.client import ClaimContext, ClientExtension, ClientRequestContext, ResultClaim
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ErrorData,
    InputResponses,
    Request,
    RequestParams,
    Result,
)


class Created(Result):
    """The result of a call that became a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    poll_interval_ms: int


class TaskParams(RequestParams):
    """The id of a task."""

    task_id: str


class _UpdateParams(TaskParams):
    input_responses: InputResponses


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    """Get the state of a task."""

    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class CancelTask(Request[TaskParams, Literal["tasks/cancel"]]):
    """Cancel a task."""

    method: Literal["tasks/cancel"] = "tasks/cancel"
    name_param = "taskId"


class UpdateTask(Request[_UpdateParams, Literal["tasks/update"]]):
    """Answer the questions of a task."""

    method: Literal["tasks/update"] = "tasks/update"
    name_param = "taskId"


class State(Result):
    """The state of a task, with its questions or its result."""

    status: str
    input_requests: dict[str, ElicitRequest] | None = None
    result: dict[str, Any] | None = None
    error: ErrorData | None = None


class TaskExtension(ClientExtension):
    """Follows a task to its end and records its states."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self) -> None:
        self.states: list[str] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Handle results that are tasks."""
        return [ResultClaim(result_type="task", model=Created, resolve=self._follow)]

    async def _follow(self, created: Created, context: ClaimContext) -> CallToolResult:
        self.states.append(created.status)
        while True:
            request = GetTask(params=TaskParams(task_id=created.task_id))
            state = await context.session.send_request(request, State)
            if state.status != self.states[-1]:
                self.states.append(state.status)
            if state.result is not None:
                return CallToolResult.model_validate(state.result)
            if state.input_requests:
                await self._answer(created.task_id, state.input_requests, context)
            await asyncio.sleep(created.poll_interval_ms / 1000)

    async def _answer(self, task_id: str, questions: dict[str, ElicitRequest], context: ClaimContext) -> None:
        responses: InputResponses = {}
        for key, question in questions.items():
            asked = ClientRequestContext(session=context.session, request_id=key)
            response = await context.session.dispatch_input_request(asked, question)
            assert not isinstance(response, ErrorData)
            responses[key] = response
        params = _UpdateParams(task_id=task_id, input_responses=responses)
        await context.session.send_request(UpdateTask(params=params), Result)
