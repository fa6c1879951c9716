"""How the code of a feature asks its caller, in each generation of the protocol."""

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from axolotl_core.cancellation import CancelReason
from axolotl_core.context import ToolContext
from axolotl_core.errors import Declined, InputRequired, MissingCapability, ToolError
from axolotl_core.layer import ToolCall
from axolotl_core.protocol.wire import notification, request_message
from axolotl_core.question import InvalidAnswer, Question
from axolotl_server.deadlines import DeadlineTable
from axolotl_server.eras.question_forms import params_for, satisfied
from axolotl_server.request import Request
from axolotl_server.rounds import Rounds
from axolotl_server.sealing import StateSealer

__all__ = ["AskingByRequest", "AskingInRounds", "IAsking", "check_capability", "withdraw"]

AnswerT = TypeVar("AnswerT")

_IN_ROUNDS = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The methods that may be answered with a question."""


class IAsking(ABC):
    """Has a question answered."""

    @abstractmethod
    async def ask(
        self, request: Request, call: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask the caller of `request`; runs in the loop of its exchange.

        Raises:
            MissingCapability: if the client did not say that it can be asked this.
            Declined: if it does not answer.
        """


class AskingByRequest(IAsking):
    """Sends a request of the server's own on the stream of the call, and waits; the call's deadline stands still."""

    def __init__(self, deadlines: DeadlineTable, timeout_seconds: float) -> None:
        self._deadlines = deadlines
        self._timeout_seconds = timeout_seconds

    async def ask(
        self, request: Request, call: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask once; an answer that cannot be used ends the call."""
        check_capability(request, question)
        assert isinstance(call, ToolCall)
        with self._deadlines.paused(call):
            response = await self._response(request, call, question)
        try:
            return read(response)
        except InvalidAnswer as error:
            raise ToolError(f"The client's answer cannot be used. {error}") from None

    async def _response(self, request: Request, call: ToolCall, question: Question) -> Any:
        connection, exchange = request.connection, request.exchange
        assert connection is not None
        if connection.deaf:
            call.stop(CancelReason.SHUTDOWN)
            await exchange.loop.create_future()  # until the call is stopped
        number = connection.next_id()
        params = params_for(question, request.era.revision, question.reference or secrets.token_hex(16))
        answered = connection.pending[number] = exchange.loop.create_future()
        request.questions = {**(request.questions or {}), number: answered}
        connection.asking[number] = call
        try:
            if not exchange.notify(request_message(number, question.method, params)):
                raise ToolError("The client cannot be asked: it does not accept an event stream")
            async with asyncio.timeout(self._timeout_seconds):
                return await answered
        except TimeoutError:
            raise Declined("cancel", f"Nobody answered within {self._timeout_seconds:g} seconds") from None
        finally:
            connection.asking.pop(number, None)
            withdraw(request, number, answered)


class AskingInRounds(IAsking):
    """Ends the run with the questions that have no answer; the caller sends the request again with the answers."""

    def __init__(self, sealer: StateSealer) -> None:
        self._sealer = sealer

    def open(self, request: Request, call: ToolCall) -> Rounds:
        """Give the rounds of a request.

        Raises:
            InvalidParams: if the state or the answers it brings cannot be used.
        """
        if request.rounds is None:
            request.rounds = Rounds.of(request, call, self._sealer)
        return request.rounds

    async def ask(
        self, request: Request, call: ToolContext, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Look for the answer, and ask where there is none that can be used."""
        if request.head.method not in _IN_ROUNDS:
            raise ToolError("Only tools, prompts and resources can ask their caller")
        check_capability(request, question)
        assert isinstance(call, ToolCall)
        rounds = self.open(request, call)
        key = key or rounds.key_for(question)
        try:
            answer = read(rounds.response(key, question))
        except InvalidAnswer:
            rounds.want(key, question)
            raise InputRequired from None
        except Declined:
            rounds.keep(key)
            raise
        rounds.keep(key)
        return answer

    def result(self, request: Request, call: ToolCall) -> bytes:
        """Write what is asked in this round."""
        return self.open(request, call).result(call, self._sealer)


def check_capability(request: Request, question: Question) -> None:
    """Make sure that the client can be asked this.

    Raises:
        MissingCapability: if it did not say so.
    """
    if not satisfied(question.requires, request.capabilities, request.era.revision):
        what = next(iter(question.requires))
        raise MissingCapability(f"This needs a client with the capability {what}", question.requires)


def withdraw(request: Request, number: int, answered: asyncio.Future[Any]) -> None:
    """Ask no more; a question that nobody answered is taken back."""
    assert request.connection is not None
    if request.connection.pending.pop(number, None) is None:
        return
    if not answered.done() or answered.cancelled():
        request.exchange.notify(notification("notifications/cancelled", {"requestId": number}))
        answered.cancel()
