"""What a task asks a caller that answers by key."""

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
    """Asks as the revision does, and shows in the task that it waits."""

    def __init__(self, task: "Task", asking: IAsking) -> None:
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


class AskingByTaskUpdate(IAsking):
    """Shows its questions in the task; the answers come by `tasks/update`, as long as the task lives."""

    def __init__(self, task: "Task", deadlines: DeadlineTable) -> None:
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


def _check_open(task: "Task") -> None:
    """Ask nothing on behalf of a task that has ended, as code that was left behind may try.

    Raises:
        Declined: if it has.
    """
    if not task.open:
        raise Declined("cancel", "The task has ended: nobody is there to answer")


_WORDS: Final = {"elicitation/create": "ask", "sampling/createMessage": "sample", "roots/list": "roots"}


class _Open(NamedTuple):
    question: Question
    read: Callable[[Any], object]
    answered: asyncio.Future[Any]


class OpenQuestions:
    """The questions that wait for an answer; no key names two of them, however long the task lives."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._used: set[str] = set()

    def add(
        self, question: Question, read: Callable[[Any], object], wish: str | None
    ) -> tuple[str, asyncio.Future[Any]]:
        """Ask, under the key that is wished for unless it was used before; gives the key and the answer to come."""
        key = next(name for name in _names(question, wish) if name not in self._used)
        self._used.add(key)
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[key] = _Open(question, read, answered)
        return key, answered

    def discard(self, key: str) -> None:
        """Ask no more."""
        self._open.pop(key, None)

    def close(self) -> None:
        """Ask nothing any more; code that still waits for an answer is cancelled there."""
        for one in self._open.values():
            one.answered.cancel()
        self._open.clear()

    def answer(self, responses: Mapping[str, Raw]) -> list[str]:
        """Take answers, and name the questions that have theirs now; what nobody asked is of no use and no harm.

        Raises:
            InvalidParams: if one cannot be used; then none is taken.
        """
        answers = {key: _usable(key, raw, self._open[key]) for key, raw in responses.items() if key in self._open}
        for key, response in answers.items():
            answered = self._open.pop(key).answered
            if not answered.done():  # else the code that asked was stopped in this very moment
                answered.set_result(response)
        return list(answers)

    def described(self) -> dict[str, object]:
        """Write the questions as the protocol has them."""
        return {key: {"method": one.question.method, "params": one.question.params} for key, one in self._open.items()}


def _names(question: Question, wish: str | None) -> Iterator[str]:
    if wish is None:
        return (f"{_WORDS[question.method]}-{number}" for number in itertools.count(1))
    return itertools.chain((wish,), (f"{wish}-{number}" for number in itertools.count(2)))


def _usable(key: str, raw: Raw, asked: _Open) -> Any:
    try:
        response = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise _unusable(key, error) from None
    try:
        asked.read(response)
    except InvalidAnswer as error:
        raise _unusable(key, error) from None
    except Exception:
        return response  # a refusal, or a failure of the code that asked: it reads the answer itself and is told
    return response


def _unusable(key: str, error: Exception) -> InvalidParams:
    return InvalidParams(f"Invalid params: the answer to {key!r} cannot be used. {error}")
