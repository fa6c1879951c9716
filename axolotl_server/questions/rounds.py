"""Questions that a stateless revision asks in rounds: the caller sends its request again, with the answers."""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from axolotl_core.errors import InvalidParams
from axolotl_core.layers import ToolCall
from axolotl_core.protocol.wire import encode
from axolotl_core.questions.question import InvalidAnswer, Question
from axolotl_server.messages.request import Request
from axolotl_server.questions.sealing import Answer, RoundState, StateBinding, StateSealer, binding_of, question_digest

_log = logging.getLogger("axolotl")

_WORDS: Final = {"elicitation/create": "ask", "sampling/createMessage": "sample", "roots/list": "roots"}


class Rounds:
    """What one request has asked and knows so far; the code of its feature runs from the start in each round."""

    def __init__(self, before: RoundState, responses: Mapping[str, Raw], *, first: bool) -> None:
        self._before = before
        self._responses = responses
        self._first = first
        self._answers = dict(before.answers)
        self._counts: Counter[str] = Counter()
        self.pending: dict[str, Question] = {}
        """The questions of this round."""
        self._fresh: dict[str, Answer] = {}
        self._conflict: str | None = None

    @classmethod
    def of(cls, request: Request, call: ToolCall, sealer: StateSealer) -> "Rounds":
        """Open what a request brings along.

        Raises:
            InvalidParams: if it brings answers of no use, or a state that was not given for this very request.
        """
        params = request.head.params
        first = params.request_state is UNSET
        before = RoundState() if params.request_state is UNSET else sealer.open(params.request_state, _binding(call))
        return cls(before, _responses(params.input_responses), first=first)

    def key_for(self, question: Question) -> str:
        """Name a question by its place among those of its kind."""
        word = _WORDS[question.method]
        self._counts[word] += 1
        return f"{word}-{self._counts[word]}"

    def response(self, key: str, question: Question) -> Any:
        """Give the answer to a question.

        An answer that came with this request counts if its question was just asked in these words, or if nothing was
        asked yet and the question need not be; one of an earlier round, if the question still has the same words.

        Raises:
            InvalidAnswer: if there is none.
        """
        digest = _digest(question)
        if self._brings(key, question, digest):
            self._fresh[key] = Answer(digest, self._responses[key])
            return _decoded(self._responses[key])
        if key in self._responses and key in self._before.asked:
            _log.warning("the question %r has other words in each run, so that no answer to it counts", key)
        known = self._answers.get(key)
        if known is None or known.digest != digest:
            raise InvalidAnswer("There is no answer yet")
        return _decoded(known.response)

    def keep(self, key: str) -> None:
        """Carry an answer that was of use into the rounds to come."""
        if key in self._fresh:
            self._answers[key] = self._fresh[key]

    def want(self, key: str, question: Question) -> None:
        """Ask in this round."""
        if self.pending.setdefault(key, question) != question:
            self._conflict = key

    def _brings(self, key: str, question: Question, digest: str) -> bool:
        """Tell whether this request brings an answer that counts."""
        if key not in self._responses:
            return False
        return self._before.asked.get(key) == digest or (self._first and not question.must_be_asked)

    def result(self, call: ToolCall, sealer: StateSealer) -> bytes:
        """Write the questions of this round and the sealed state, without what closes a result.

        Raises:
            ValueError: if two questions have the same key.
            ToolError: if the answers so far are too large to be carried.
        """
        if self._conflict is not None:
            raise ValueError(f"two questions have the key {self._conflict!r}")
        asked = {key: _digest(question) for key, question in self.pending.items()}
        state = sealer.seal(RoundState(self._answers, asked), _binding(call))
        requests = {
            key: {"method": question.method, "params": question.params} for key, question in self.pending.items()
        }
        return b'{"inputRequests":%b,"requestState":%b' % (encode(requests), encode(state))


def _decoded(response: Raw) -> Any:
    try:
        return msgspec.json.decode(response)
    except msgspec.DecodeError:
        raise InvalidAnswer("Invalid answer: it holds a number that is out of range") from None


def _digest(question: Question) -> str:
    return question_digest(question.method, question.params)


def _binding(call: ToolCall) -> StateBinding:
    request = call.caller
    assert isinstance(request, Request)
    return binding_of(call.principal, request.head.method, call.uri or call.spec.name, call.raw)


def _responses(raw: Raw | msgspec.UnsetType) -> Mapping[str, Raw]:
    if raw is UNSET:
        return {}
    try:
        return msgspec.json.decode(raw, type=dict[str, Raw])
    except msgspec.ValidationError:
        raise InvalidParams('Invalid params: "inputResponses" must be an object') from None
