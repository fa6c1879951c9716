"""The ways in which the code of a feature asks its caller: by a request of the server, or in rounds."""

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.calls.context import Context
from axolotl_core.calls.steps import KeptStep, step_idempotency_key
from axolotl_core.errors import Declined, InputRequired, MissingCapability, ToolError
from axolotl_core.layers import Call
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import notification, request_message
from axolotl_core.questions.question import InvalidAnswer, Question
from axolotl_core.schema import JsonSchema
from axolotl_server.calls.rounds import Rounds
from axolotl_server.calls.sealing import StateSealer
from axolotl_server.layers.deadline import DeadlineTable
from axolotl_server.protocol.request import Request

if TYPE_CHECKING:
    from axolotl_server.audit.decisions import DecisionLog


def params_for(question: Question, revision: Revision, elicitation_id: str) -> dict[str, Any]:
    """Return the params of a question in the form of a revision, or raise MissingCapability if it has none."""
    params = dict(question.params)
    if question.method == "sampling/createMessage":
        return _sampling(params, question, revision)
    if question.method != "elicitation/create":
        return params
    if not revision.elicitation:
        raise _unsupported("its user cannot be asked", question, revision)
    if params["mode"] == "url":
        if not revision.url_elicitation:
            raise _unsupported("its user cannot be asked to open a URL", question, revision)
        return {**params, "elicitationId": elicitation_id} if revision.elicitation_ids else params
    return params if revision.rich_forms else _plain_form(params, question, revision)


def satisfied(requires: Mapping[str, Any], declared: Mapping[str, Any], revision: Revision) -> bool:
    """Tell whether a client that declared some capabilities has the required ones."""
    return all(_has(declared.get(name), name, parts, revision) for name, parts in requires.items())


def _has(given: Any, name: str, parts: Mapping[str, Any], revision: Revision) -> bool:
    if not isinstance(given, Mapping) or (name == "elicitation" and not revision.elicitation):
        return False
    return all(part in _parts(given, name, revision) for part in parts)


def _parts(given: Mapping[str, Any], name: str, revision: Revision) -> set[str]:
    """Return the parts of a capability; in revisions that do not name parts, those that existed at the time."""
    if name == "elicitation" and not revision.url_elicitation:
        return {"form"}
    if name == "sampling" and not revision.sampling_tools:
        return {"context"}
    parts = {part for part, value in given.items() if isinstance(value, Mapping)}
    return parts | {"form"} if name == "elicitation" and "url" not in parts else parts


def _plain_form(params: dict[str, Any], question: Question, revision: Revision) -> dict[str, Any]:
    schema = params["requestedSchema"]
    multiple = [name for name, field in schema["properties"].items() if field["type"] == "array"]
    if multiple:
        raise _unsupported(f"its user cannot choose several values ({', '.join(multiple)})", question, revision)
    properties = {name: _plain_field(field) for name, field in schema["properties"].items()}
    return {"message": params["message"], "requestedSchema": {**schema, "properties": properties}}


def _plain_field(field: JsonSchema) -> JsonSchema:
    if field["type"] == "boolean":
        return field
    plain = {key: value for key, value in field.items() if key not in ("default", "oneOf")}
    if "oneOf" in field:
        plain["enum"] = [one["const"] for one in field["oneOf"]]
        plain["enumNames"] = [one["title"] for one in field["oneOf"]]
    return plain


def _sampling(params: dict[str, Any], question: Question, revision: Revision) -> dict[str, Any]:
    if revision.sampling_tools:
        messages = params["messages"] if revision.any_structured_root else map(_wrap_results, params["messages"])
        return {**params, "messages": list(messages)}
    if "tools" in question.requires["sampling"]:
        raise _unsupported("its model cannot be given tools", question, revision)
    messages = [single for message in params["messages"] for single in _single_messages(message, revision)]
    if not revision.audio and any(message["content"]["type"] == "audio" for message in messages):
        raise _unsupported("its model cannot be given audio", question, revision)
    return {**params, "messages": messages}


def _single_messages(message: Mapping[str, Any], revision: Revision) -> Iterator[dict[str, Any]]:
    """Split a message into one per content block."""
    for block in _blocks(message):
        yield {"role": message["role"], "content": block if revision.titles else _plain_block(block)}


def _plain_block(block: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in block.items() if key != "_meta"}
    if "annotations" in plain:
        plain["annotations"] = {key: value for key, value in plain["annotations"].items() if key != "lastModified"}
    return plain


def _wrap_results(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Wrap the structured results of tools in an object, if they are not objects."""
    blocks = [_wrap_result(block) for block in _blocks(message)]
    return {**message, "content": blocks if isinstance(message["content"], list) else blocks[0]}


def _wrap_result(block: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(block.get("structuredContent", {}), dict):
        return block
    return {**block, "structuredContent": {"result": block["structuredContent"]}}


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message["content"]
    return content if isinstance(content, list) else [content]


def _unsupported(problem: str, question: Question, revision: Revision) -> MissingCapability:
    return MissingCapability(f"The client speaks revision {revision.name}: {problem}", question.requires)


AnswerT = TypeVar("AnswerT")

_METHODS_WITH_ROUNDS = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The methods whose result can be a question."""


class StepsInMemory(NamedTuple):
    """The steps of a call whose runs all belong to one request, such as retries."""

    call_key: str
    results: dict[str, bytes]


class IAsking(ABC):
    """A way to ask the caller."""

    def __init__(self, decisions: "DecisionLog | None" = None) -> None:
        """Record the answers, if there is an audit log."""
        self._decisions = decisions

    @abstractmethod
    async def ask(
        self, request: Request, call: Context, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask the caller of `request`, in the loop of its exchange.

        It raises MissingCapability if the client cannot be asked this, and Declined if there is no answer.
        """

    async def recall(self, request: Request, call: Context, key: str) -> KeptStep:
        """Return what earlier runs of the call know about a step. Without other runs, results stay with the request."""
        if request.steps is None:
            request.steps = StepsInMemory(secrets.token_hex(16), {})
        return KeptStep(step_idempotency_key(request.steps.call_key, key), request.steps.results.get(key))

    async def keep(self, request: Request, call: Context, key: str, value: bytes) -> None:
        """Store the result of a step for later runs of the call, or raise ToolError if there is no room for it."""
        assert request.steps is not None
        request.steps.results[key] = value

    def _note_answer(self, request: Request, call: Call, key: str | None, response: Any) -> None:
        if self._decisions is not None:
            self._decisions.answered(request, call, key, response)


class AskingByRequest(IAsking):
    """Sends a request on the stream of the call and waits for the answer; the deadline of the call is paused."""

    def __init__(
        self, deadlines: DeadlineTable, timeout_seconds: float, decisions: "DecisionLog | None" = None
    ) -> None:
        super().__init__(decisions)
        self._deadlines = deadlines
        self._timeout_seconds = timeout_seconds

    async def ask(
        self, request: Request, call: Context, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Ask once; an invalid answer ends the call."""
        check_capability(request, question)
        assert isinstance(call, Call)
        try:
            with self._deadlines.paused(call):
                response = await self._response(request, call, question)
        except Declined as refusal:
            if refusal.action == "refuse":
                self._note_answer(request, call, key, {"action": "refuse"})
            raise
        self._note_answer(request, call, key, response)
        try:
            return read(response)
        except InvalidAnswer as error:
            raise ToolError(f"The client's answer cannot be used. {error}") from None

    async def _response(self, request: Request, call: Call, question: Question) -> Any:
        connection, exchange = request.connection, request.exchange
        assert connection is not None
        if connection.input_closed:
            call.stop(CancelReason.SHUTDOWN)
            await exchange.loop.create_future()  # until the call is stopped
        number = connection.next_id()
        params = params_for(question, request.era.revision, question.reference or secrets.token_hex(16))
        answered = connection.pending_answers[number] = exchange.loop.create_future()
        request.questions = {**(request.questions or {}), number: answered}
        connection.waiting_calls[number] = call
        try:
            if not exchange.notify(request_message(number, question.method, params)):
                raise ToolError("The client cannot be asked: it does not accept an event stream")
            async with asyncio.timeout(self._timeout_seconds):
                return await answered
        except TimeoutError:
            raise Declined("cancel", f"There was no answer within {self._timeout_seconds:g} seconds") from None
        finally:
            connection.waiting_calls.pop(number, None)
            withdraw(request, number, answered)


class AskingInRounds(IAsking):
    """Ends the run with the unanswered questions; the caller sends the request again with the answers."""

    def __init__(self, sealer: StateSealer, decisions: "DecisionLog | None" = None) -> None:
        super().__init__(decisions)
        self._sealer = sealer

    def open(self, request: Request, call: Call) -> Rounds:
        """Return the rounds of a request, or raise InvalidParams if its state or its answers are not valid."""
        if request.rounds is None:
            request.rounds = Rounds.of(request, call, self._sealer)
        return request.rounds

    async def ask(
        self, request: Request, call: Context, question: Question, read: Callable[[Any], AnswerT], key: str | None
    ) -> AnswerT:
        """Look for the answer, and ask if there is no valid one."""
        if request.head.method not in _METHODS_WITH_ROUNDS:
            raise ToolError("Only tools, prompts and resources can ask their caller")
        check_capability(request, question)
        assert isinstance(call, Call)
        rounds = self.open(request, call)
        key = key or rounds.key_for(question)
        try:
            response = rounds.response(key, question)
            answer = read(response)
        except InvalidAnswer:
            rounds.ask_in_round(key, question)
            raise InputRequired from None
        except Declined:
            self._keep_answer(request, call, key, response)
            raise
        self._keep_answer(request, call, key, response)
        return answer

    def _keep_answer(self, request: Request, call: Call, key: str, response: Any) -> None:
        assert request.rounds is not None
        if request.rounds.keep_answer(key):
            self._note_answer(request, call, key, response)

    async def recall(self, request: Request, call: Context, key: str) -> KeptStep:
        if request.head.method not in _METHODS_WITH_ROUNDS:
            return await super().recall(request, call, key)
        assert isinstance(call, Call)
        rounds = self.open(request, call)
        return KeptStep(step_idempotency_key(rounds.call_key, key), rounds.steps.get(key))

    async def keep(self, request: Request, call: Context, key: str, value: bytes) -> None:
        if request.rounds is None:
            await super().keep(request, call, key, value)
        else:
            request.rounds.steps[key] = value

    def result(self, request: Request, call: Call) -> bytes:
        """Encode the questions of this round."""
        return self.open(request, call).result(call, self._sealer)


def check_capability(request: Request, question: Question) -> None:
    """Raise MissingCapability unless the client declared that it can be asked this."""
    if not satisfied(question.requires, request.capabilities, request.era.revision):
        what = next(iter(question.requires))
        raise MissingCapability(f"This needs a client with the capability {what}", question.requires)


def withdraw(request: Request, number: int, answered: asyncio.Future[Any]) -> None:
    """Stop waiting for an answer, and cancel the question if there was none."""
    assert request.connection is not None
    if request.connection.pending_answers.pop(number, None) is None:
        return
    if not answered.done() or answered.cancelled():
        request.exchange.notify(notification("notifications/cancelled", {"requestId": number}))
        answered.cancel()
