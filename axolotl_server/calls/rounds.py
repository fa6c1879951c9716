"""The rounds of a stateless question: the caller sends its request again, with the answers."""

import logging
from collections import Counter
from collections.abc import Mapping
from secrets import token_hex
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from axolotl_core.errors import InvalidParams
from axolotl_core.layers import Call
from axolotl_core.protocol.wire import encode
from axolotl_core.questions.question import KEYS, InvalidAnswer, Question
from axolotl_server.calls.sealing import Answer, RoundState, StateBinding, StateSealer, binding_of, question_digest
from axolotl_server.protocol.request import Request

_log = logging.getLogger("axolotl")


class Rounds:
    """The questions and answers of one request so far; the code of its feature starts again in each round."""

    def __init__(self, previous: RoundState, responses: Mapping[str, Raw], *, first: bool) -> None:
        self._previous = previous
        self._responses = responses
        self._first = first
        self._answers = dict(previous.answers)
        self._counts: Counter[str] = Counter()
        self.steps = dict(previous.steps)
        """The results of the steps that are finished."""
        self.call_key = previous.call_key or token_hex(16)
        """Identifies the call in all of its rounds."""
        self.pending: dict[str, Question] = {}
        """The questions of this round."""
        self._new_answers: dict[str, Answer] = {}
        self._conflict: str | None = None

    @classmethod
    def of(cls, request: Request, call: Call, sealer: StateSealer) -> "Rounds":
        """Read the state and the answers that a request brings, or raise InvalidParams if they are not valid for it."""
        params = request.head.params
        first = params.request_state is UNSET
        previous = RoundState() if params.request_state is UNSET else sealer.open(params.request_state, _binding(call))
        return cls(previous, _responses(params.input_responses), first=first)

    def key_for(self, question: Question) -> str:
        """Name a question by its kind and its number within that kind."""
        word = KEYS[question.method]
        self._counts[word] += 1
        return f"{word}-{self._counts[word]}"

    def response(self, key: str, question: Question) -> Any:
        """Return the answer to a question, or raise InvalidAnswer if there is none.

        An answer in this request counts if the same question was just asked. It also counts if nothing was asked yet,
        unless the question must be asked. An answer of an earlier round counts if the question is still the same.
        """
        digest = _digest(question)
        is_asked = self._previous.asked.get(key) == digest or (self._first and not question.must_be_asked)
        if is_asked and key in self._responses:
            self._new_answers[key] = Answer(digest, self._responses[key])
            return _decoded(self._responses[key])
        if key in self._responses and key in self._previous.asked:
            _log.warning("the question %r has a different text in each run, so its answers cannot be used", key)
        known = self._answers.get(key)
        if known is None or known.digest != digest:
            raise InvalidAnswer("There is no answer yet")
        return _decoded(known.response)

    def keep_answer(self, key: str) -> bool:
        """Carry a valid answer into the next rounds; returns whether this request brought it and nobody has read it."""
        answer = self._new_answers.get(key)
        if answer is None or answer == self._answers.get(key):
            return False
        self._answers[key] = answer
        return True

    def ask_in_round(self, key: str, question: Question) -> None:
        """Ask in this round."""
        if self.pending.setdefault(key, question) != question:
            self._conflict = key

    def result(self, call: Call, sealer: StateSealer) -> bytes:
        """Encode the questions of this round and the sealed state, without the end of the result.

        Two questions with the same key raise ValueError, and answers that are too large raise ToolError.
        """
        if self._conflict is not None:
            raise ValueError(f"two questions have the key {self._conflict!r}")
        asked = {key: _digest(question) for key, question in self.pending.items()}
        state = sealer.seal(self.state(asked), _binding(call))
        requests = {
            key: {"method": question.method, "params": question.params} for key, question in self.pending.items()
        }
        return b'{"inputRequests":%b,"requestState":%b' % (encode(requests), encode(state))

    def state(self, asked: dict[str, str]) -> RoundState:
        """Return the answers and steps so far, and the questions of this round."""
        return RoundState(self._answers, asked, self.steps, self.call_key if self.steps else "")


def _decoded(response: Raw) -> Any:
    try:
        return msgspec.json.decode(response)
    except msgspec.DecodeError:
        raise InvalidAnswer("Invalid answer: it holds a number that is out of range") from None


def _digest(question: Question) -> str:
    return question_digest(question.method, question.params)


def _binding(call: Call) -> StateBinding:
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
