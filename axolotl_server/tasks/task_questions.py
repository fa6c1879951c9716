"""The questions of a task, asked like the revision does or answered by key."""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from axolotl_core.calls.context import ToolContext
from axolotl_core.errors import Declined, InvalidParams
from axolotl_core.layers import ToolCall
from axolotl_core.questions.question import InvalidAnswer, Question
from axolotl_server.layers.deadline import DeadlineTable
from axolotl_server.messages.request import Request
from axolotl_server.questions.asking import IAsking, check_capability

if TYPE_CHECKING:
    from axolotl_server.tasks.task import Task

AnswerT = TypeVar("AnswerT")


class AskingInTask(IAsking):
    """Asks like the revision does, and notes in the task that it waits."""

    def __init__(self, task: "Task", asking: IAsking) -> None:
        self._task = task
        self._asking = asking

    async def ask(
        self, request: Request, call: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        check_capability(request, question)
        _check_open(self._task)
        answer = object()
        self._task.wait_for(answer)
        try:
            return await self._asking.ask(request, call, question, read, key)
        finally:
            self._task.stop_waiting_for(answer)


class AskingByTaskUpdate(IAsking):
    """Shows its questions in the task; the answers arrive by `tasks/update` while the task is open."""

    def __init__(self, task: "Task", deadlines: DeadlineTable) -> None:
        self._task = task
        self._deadlines = deadlines

    async def ask(
        self, request: Request, call: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask under a key that is unique within the task, and wait."""
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
            self._task.stop_waiting_for(key)


def _check_open(task: "Task") -> None:
    """Raise Declined if a task has ended: abandoned code may still try to ask."""
    if not task.open:
        raise Declined("cancel", "The task has ended, so its caller cannot answer")


_WORDS: Final = {"elicitation/create": "ask", "sampling/createMessage": "sample", "roots/list": "roots"}


class _OpenQuestion(NamedTuple):
    question: Question
    read: Callable[[Any], object]
    answered: asyncio.Future[Any]


class OpenQuestions:
    """The questions that wait for an answer; a key is used once in the life of a task."""

    def __init__(self) -> None:
        self._open: dict[str, _OpenQuestion] = {}
        self._used: set[str] = set()

    def add(
        self, question: Question, read: Callable[[Any], object], requested: str | None
    ) -> tuple[str, asyncio.Future[Any]]:
        """Ask under the requested key, or one derived from it; gives the key and the future answer."""
        key = next(name for name in _names(question, requested) if name not in self._used)
        self._used.add(key)
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[key] = _OpenQuestion(question, read, answered)
        return key, answered

    def discard(self, key: str) -> None:
        """Stop asking a question."""
        self._open.pop(key, None)

    def close(self) -> None:
        """Stop asking; code that still waits for an answer is cancelled."""
        for one in self._open.values():
            one.answered.cancel()
        self._open.clear()

    def answer(self, responses: Mapping[str, Raw]) -> list[str]:
        """Take answers and give the keys of the answered questions; answers to unknown questions are ignored.

        If one is not valid, none is taken and InvalidParams is raised.
        """
        answers = {key: _checked(key, raw, self._open[key]) for key, raw in responses.items() if key in self._open}
        for key, response in answers.items():
            answered = self._open.pop(key).answered
            if not answered.done():  # otherwise the code that asked has just been stopped
                answered.set_result(response)
        return list(answers)

    def describe(self) -> dict[str, object]:
        """Describe the questions in the form of the protocol."""
        return {key: {"method": one.question.method, "params": one.question.params} for key, one in self._open.items()}


def _names(question: Question, requested: str | None) -> Iterator[str]:
    if requested is None:
        return (f"{_WORDS[question.method]}-{number}" for number in itertools.count(1))
    return itertools.chain((requested,), (f"{requested}-{number}" for number in itertools.count(2)))


def _checked(key: str, raw: Raw, asked: _OpenQuestion) -> Any:
    try:
        response = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise _invalid(key, error) from None
    try:
        asked.read(response)
    except InvalidAnswer as error:
        raise _invalid(key, error) from None
    except Exception:
        return response  # the code that asked reads it again and gets the same error
    return response


def _invalid(key: str, error: Exception) -> InvalidParams:
    return InvalidParams(f"Invalid params: the answer to {key!r} cannot be used. {error}")
