"""Questions of a call that runs as a task: it can wait for the answer, in every revision."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

from axolotl_core.context import ToolContext
from axolotl_core.errors import ToolError
from axolotl_core.layer import ToolCall
from axolotl_core.question import InvalidAnswer, Question
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
        with self._task.waiting():
            return await self._asking.ask(request, call, question, read, key)


class AskingByUpdate(IAsking):
    """Shows its questions in the task; the answers come by `tasks/update`."""

    def __init__(self, task: Task, deadlines: DeadlineTable) -> None:
        self._task = task
        self._deadlines = deadlines
        self._used: set[str] = set()

    async def ask(
        self, request: Request, call: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask under a key that no other question of the task has, and wait."""
        check_capability(request, question)
        assert isinstance(call, ToolCall)
        key = self._unused(key or "ask")
        answered: asyncio.Future[Any] = request.exchange.loop.create_future()
        self._task.questions[key] = (question, answered)
        try:
            with self._task.waiting(), self._deadlines.paused(call):
                return read(await answered)
        except InvalidAnswer as error:
            raise ToolError(f"The client's answer cannot be used. {error}") from None
        finally:
            self._task.questions.pop(key, None)

    def _unused(self, wish: str) -> str:
        names = (wish if number == 1 else f"{wish}-{number}" for number in itertools.count(1))
        key = next(name for name in names if name not in self._used)
        self._used.add(key)
        return key
