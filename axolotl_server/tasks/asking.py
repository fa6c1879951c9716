"""Questions of a call that runs as a task: it can wait for the answer, in every revision."""

from collections.abc import Callable
from typing import Any, TypeVar

from axolotl_core.context import ToolContext
from axolotl_core.errors import Declined
from axolotl_core.layer import ToolCall
from axolotl_core.question import Question
from axolotl_server.deadlines import DeadlineTable
from axolotl_server.eras.asking import IAsking, check_capability
from axolotl_server.request import Request
from axolotl_server.tasks.task import Task

__all__ = ["AskingByUpdate", "AskingVisibly"]

AnswerT = TypeVar("AnswerT")


class AskingVisibly(IAsking):
    """Asks as the revision does, and shows in the task that it waits."""

    def __init__(self, task: Task, asking: IAsking) -> None:
        self._task = task
        self._asking = asking

    async def ask(
        self, request: Request, call: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask and wait."""
        check_capability(request, question)
        _check_open(self._task)
        answer = object()
        self._task.wait_for(answer)
        try:
            return await self._asking.ask(request, call, question, read, key)
        finally:
            self._task.go_on(answer)


class AskingByUpdate(IAsking):
    """Shows its questions in the task; the answers come by `tasks/update`, as long as the task lives."""

    def __init__(self, task: Task, deadlines: DeadlineTable) -> None:
        self._task = task
        self._deadlines = deadlines

    async def ask(
        self, request: Request, call: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask under a key that no other question of the task has, and wait."""
        check_capability(request, question)
        _check_open(self._task)
        assert isinstance(call, ToolCall)
        questions = self._task.questions
        key, answered = questions.add(question, read, key)
        try:
            with self._deadlines.paused(call):
                self._task.wait_for(key)
                return read(await answered)
        finally:
            questions.discard(key)
            self._task.go_on(key)


def _check_open(task: Task) -> None:
    """Ask nothing on behalf of a task that has ended, as code that was left behind may try.

    Raises:
        Declined: if it has.
    """
    if not task.open:
        raise Declined("cancel", "The task has ended: nobody is there to answer")
