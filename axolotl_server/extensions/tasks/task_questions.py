"""The questions of a task: published by its run, and answered from any process."""

import asyncio
import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw

from axolotl_core.calls.context import Context
from axolotl_core.calls.steps import KeptStep, step_idempotency_key
from axolotl_core.errors import Declined, InputRequired, InvalidParams, ToolError
from axolotl_core.layers import Call
from axolotl_core.questions.question import KEYS, InvalidAnswer, Question, read_url
from axolotl_core.task_engine import ITaskRun, TaskQuestion
from axolotl_server.calls.asking import IAsking, check_capability, params_for
from axolotl_server.calls.sealing import question_digest
from axolotl_server.extensions.tasks.task_call import TaskAnswer, TaskCall
from axolotl_server.layers.deadline import DeadlineTable
from axolotl_server.protocol.request import Request

AnswerT = TypeVar("AnswerT")


Checks: TypeAlias = dict[tuple[str, str], Callable[[Any], object]]
"""The functions that read the answers to the questions that code in this process asks, by task and key."""


_decode_answer: Final = msgspec.json.Decoder(TaskAnswer).decode


class AskingInTask(IAsking):
    """Publishes questions in the task and waits for the answers, which arrive from any process."""

    def __init__(
        self,
        run: ITaskRun,
        earlier: TaskCall,
        deadlines: DeadlineTable,
        checks: Checks,
        *,
        timeout_seconds: float | None,
        hold_seconds: float | None,
    ) -> None:
        """Ask for a run of a call, which may have got answers before it became a task.

        A question that times out is withdrawn; one that is held too long parks the task.
        """
        super().__init__()  # answers are recorded by the process that takes them
        self._run = run
        self._earlier = earlier
        self._deadlines = deadlines
        self._checks = checks
        self._timeout_seconds = timeout_seconds
        self._hold_seconds = hold_seconds
        self._used: set[str] = set()
        self.parked = False
        """Whether the run has ended without an end of the task."""

    async def ask(
        self, request: Request, call: Context, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask under a key that is unique within the run, or use the answer that an earlier run has got."""
        check_capability(request, question)
        if not self._run.record.open:  # abandoned code may still try to ask
            raise Declined("cancel", "The task has ended, so its caller cannot answer")
        assert isinstance(call, Call)
        key = next(name for name in _names(question, key) if name not in self._used)
        self._used.add(key)
        digest = question_digest(question.method, question.params)
        params = question.params
        if not request.era.revision.stateless:
            params = params_for(question, request.era.revision, question.reference or secrets.token_hex(16))
        asked = TaskQuestion(question.method, params, digest)
        # Where no run may be repeated, an answer to an earlier one is there only if somebody has put it back.
        repeatable = {} if self._hold_seconds is None else self._run.answers
        known = repeatable.get(key, self._earlier.answers.get(key))
        answer = None if known is None else _decode_answer(known)
        while True:
            if answer is None or answer.digest != digest:
                with self._deadlines.paused(call):
                    answer = await self._answer(key, asked, read)
            try:
                return read(_response(answer))
            except InvalidAnswer as error:
                if not request.era.revision.stateless:
                    raise ToolError(f"The client's answer cannot be used. {error}") from None
                answer = None

    async def recall(self, request: Request, call: Context, key: str) -> KeptStep:
        value = self._run.kept.get(key, self._earlier.steps.get(key))
        return KeptStep(step_idempotency_key(self._earlier.call_key or self._run.record.id, key), value)

    async def keep(self, request: Request, call: Context, key: str, value: bytes) -> None:
        await self._run.keep(key, value)

    async def _answer(self, key: str, asked: TaskQuestion, read: Callable[[Any], object]) -> TaskAnswer:
        place = self._run.record.id, key
        self._checks[place] = read
        try:
            async with asyncio.timeout(self._timeout_seconds):
                answer = await self._run.ask(key, asked, hold_seconds=self._hold_seconds)
        except TimeoutError:
            raise Declined("cancel", f"There was no answer within {self._timeout_seconds:g} seconds") from None
        finally:
            self._checks.pop(place, None)
        if answer is None:
            self.parked = True
            raise InputRequired
        return _decode_answer(answer)


def checked_answers(
    task_id: str, questions: Mapping[str, TaskQuestion], responses: Mapping[str, Raw], checks: Checks
) -> dict[str, bytes]:
    """Encode the answers to the open questions of a task; answers to other questions are ignored.

    If one is not valid, InvalidParams is raised. The code that asked checks an answer completely: where it runs in
    another process, only the form is checked here, and the question is asked again if the rest is wrong.
    """
    taken = {key: raw for key, raw in responses.items() if key in questions}
    for key, raw in taken.items():
        generic = read_url if questions[key].method == "elicitation/create" else lambda response: None
        _check(key, raw, checks.get((task_id, key), generic))
    return {key: TaskAnswer(questions[key].digest, raw).encode() for key, raw in taken.items()}


def _check(key: str, raw: Raw, read: Callable[[Any], object]) -> None:
    try:
        response = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise _invalid(key, error) from None
    try:
        read(response)
    except InvalidAnswer as error:
        raise _invalid(key, error) from None
    except Exception:
        return  # the code that asked reads it again and gets the same error


def response_in(encoded: bytes) -> Any:
    """Return what a client has answered, as it sent it."""
    answer = _decode_answer(encoded)
    return {"action": "refuse"} if answer.refusal is not UNSET else _response(answer)


def _response(answer: TaskAnswer) -> Any:
    if answer.refusal is not UNSET:
        raise Declined("refuse", answer.refusal)
    return None if answer.result is UNSET else msgspec.json.decode(answer.result)


def _names(question: Question, requested: str | None) -> Iterator[str]:
    if requested is None:
        return (f"{KEYS[question.method]}-{number}" for number in itertools.count(1))
    return itertools.chain((requested,), (f"{requested}-{number}" for number in itertools.count(2)))


def _invalid(key: str, error: Exception) -> InvalidParams:
    return InvalidParams(f"Invalid params: the answer to {key!r} cannot be used. {error}")
