"""Followers of requested tasks: they carry the messages and questions of a task to its client."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import Declined
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.wire import encode, notification, request_message
from axolotl_core.task_engine import TaskChange, TaskQuestion, TaskRecord, TasksUnavailable
from axolotl_server.extensions.tasks.task_call import TaskAnswer
from axolotl_server.protocol.connection import Audience, Connection, IExchange, IOpenStream, IRunning, WaitingRequest

_RELATED_TASK_KEY: Final = "io.modelcontextprotocol/related-task"
_RETRY_SECONDS: Final = 0.2

SendAnswer: TypeAlias = Callable[[TaskRecord, Mapping[str, bytes]], Coroutine[Any, Any, object]]
"""Gives answers to a task."""


def mark_related(content: Mapping[str, Raw], task_id: str) -> dict[str, Raw]:
    """Mark a result, or the params of a message, as belonging to a task; everything else stays as it is."""
    meta = msgspec.json.decode(content.get("_meta", b"{}"), type=dict[str, Raw])
    meta[_RELATED_TASK_KEY] = Raw(encode({"taskId": task_id}))
    return {**content, "_meta": Raw(encode(meta))}


class Waiter(WaitingRequest):
    """A request that waits for the end of a task; the task may send messages on its stream in the meantime."""

    def __init__(self, exchange: IExchange, spec: FeatureSpec | None) -> None:
        """`spec` is the tool of the task."""
        super().__init__(exchange, spec)
        self._exchange = exchange
        self._has_sent = False
        self.lost = False
        """Whether its connection is lost; a client that has received messages on it may come back."""

    def lose(self, reason: CancelReason) -> None:
        """Note that the connection is lost, which does not have to end the wait."""
        self.lost = True
        if not self._has_sent:
            self.stop(reason)

    def send(self, message: bytes) -> bool:
        """Send a message ahead of the reply, or return False if the client accepts none."""
        sent = self.reason is None and self._exchange.notify(message)
        self._has_sent = self._has_sent or sent
        return sent


class _Listening:
    """The stream of a session as the carrier of a question; a client that resumes the stream gets the question."""

    def __init__(self, stream: IOpenStream) -> None:
        self._stream = stream

    @property
    def lost(self) -> bool:
        return not self._stream.connected

    def send(self, message: bytes) -> bool:
        self._stream.put(message)
        return self._stream.connected


_Carrier: TypeAlias = Waiter | _Listening
"""The stream that a question was sent on."""


class _Notification(msgspec.Struct):
    """A notification that the code of a task sent."""

    method: str
    params: dict[str, Raw] = {}


_read_notification: Final = msgspec.json.Decoder(_Notification).decode


@dataclass(slots=True)
class _SentQuestion:
    number: int
    message: bytes
    carrier: _Carrier | None = None
    """The stream that it was sent on, None if there was none."""


class TaskFollower:
    """Follows one task for one client.

    Messages go to the stream of a request that waits for the result, or to the connection. Over HTTP, nobody may be
    listening on the connection: a question waits for a request or an open stream, and is sent again if that is lost.
    """

    def __init__(
        self,
        record: TaskRecord,
        connection: Connection,
        describe: Callable[[TaskRecord], dict[str, Any]],
        answer: SendAnswer,
        *,
        over_http: bool,
        alone: bool,
        call: IRunning,
        audience: Audience | None,
    ) -> None:
        """Follow a task, `alone` unless another process may ask the same questions at the same time.

        `call` is stopped if the client leaves a question unanswered and goes. `audience` may hear messages on the
        connection; None is everybody.
        """
        self.record = record
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.silent = False
        """Whether notifications are suppressed, because the server stops and the connection may be gone."""
        self._connection = connection
        self._describe = describe
        self._answer = answer
        self._over_http = over_http
        self._alone = alone
        self._call = call
        self._audience = audience
        self._waiters: list[Waiter] = []
        """The latest first."""
        self._questions: dict[str, _SentQuestion] = {}
        self._answering: dict[str, asyncio.Task[None]] = {}
        """The answers that are being stored, by the key of their question, which is not asked again."""

    def change(self, change: TaskChange) -> None:
        """Carry a change of the task to its client."""
        self.record = change.record
        for message in map(_read_notification, change.messages):
            self._notify(message.method, message.params)
        if change.is_status and not self.silent:
            status = notification("notifications/tasks/status", self._describe(change.record))
            self._connection.send_to(self._audience, status)
        questions = change.record.questions
        for key in [key for key in self._questions if key not in questions]:
            self._withdraw(self._questions.pop(key))
        for key, question in questions.items():
            if key not in self._questions and key not in self._answering:
                self._ask(key, question)
        if not change.record.open and not self.ended.done():
            self.ended.set_result(None)

    def attach(self, waiter: Waiter) -> None:
        """Send messages on the stream of a request that waits for the result."""
        self._waiters.insert(0, waiter)
        self.ask_again()

    def ask_again(self) -> None:
        """Send the questions that the client has not received, if it can receive them now."""
        if not self._over_http:
            return
        for question in self._questions.values():
            if question.carrier is None or question.carrier.lost:
                question.carrier = self._send_to_connected(question.message) or question.carrier

    def detach(self, waiter: Waiter) -> None:
        """Stop sending on the stream of a request, which is about to be answered."""
        self._waiters.remove(waiter)
        waiter.stop(CancelReason.CLIENT)

    @property
    def hears(self) -> bool:
        """Whether a message can reach the client from this process."""
        return bool(self._waiters) or self._connection.reaches_client

    def _ask(self, key: str, question: TaskQuestion) -> None:
        connection = self._connection
        if connection.input_closed:
            self._call.stop(CancelReason.SHUTDOWN)
            return
        number = connection.next_id()
        answered = connection.pending_answers[number] = asyncio.get_running_loop().create_future()
        connection.waiting_calls[number] = self._call
        params = {name: Raw(encode(value)) for name, value in question.params.items()}
        message = request_message(number, question.method, mark_related(params, self.record.id))
        sent = self._questions[key] = _SentQuestion(number, message)
        answered.add_done_callback(lambda future: self._take_answer(key, question.digest, number, future))
        if self._over_http:
            sent.carrier = self._send_to_connected(message) or self._send_to_waiter(message)
        else:
            connection.send(message)

    def _take_answer(self, key: str, digest: str, number: int, answered: asyncio.Future[Any]) -> None:
        self._connection.pending_answers.pop(number, None)
        self._connection.waiting_calls.pop(number, None)
        if answered.cancelled():
            return
        self._questions.pop(key, None)
        error = answered.exception()
        if error is None:
            answer = TaskAnswer(digest, Raw(encode(answered.result())))
        else:
            assert isinstance(error, Declined)
            answer = TaskAnswer(digest, refusal=error.message)
        self._answering[key] = asyncio.ensure_future(self._give(key, answer.encode()))

    async def _give(self, key: str, answer: bytes) -> None:
        """Give an answer to the task, as soon as its store can be reached: the client does not send it again."""
        record = self.record
        try:
            while self.record.open and not self.silent:
                try:
                    await self._answer(record, {key: answer})
                    return
                except TasksUnavailable:
                    await asyncio.sleep(_RETRY_SECONDS)
        finally:
            del self._answering[key]

    def _withdraw(self, question: _SentQuestion) -> None:
        """Cancel a question where it was asked; one that was not sent yet is just forgotten."""
        connection = self._connection
        connection.waiting_calls.pop(question.number, None)
        answered = connection.pending_answers.pop(question.number, None)
        if answered is None or answered.done():
            return
        answered.cancel()
        if question.carrier is not None or not self._over_http:
            self._notify("notifications/cancelled", {"requestId": Raw(encode(question.number))}, question.carrier)

    def _notify(self, method: str, params: Mapping[str, Raw], carrier: _Carrier | None = None) -> None:
        """Send a notification, if possible on a carrier."""
        if self.silent:
            return
        message = notification(method, mark_related(params, self.record.id))
        if not self._over_http:
            self._connection.send(message)
        elif (carrier is None or not carrier.send(message)) and self._send_to_waiter(message) is None:
            self._connection.send_to(self._audience, message)

    def _send_to_connected(self, message: bytes) -> _Carrier | None:
        """Send a question on the stream of a waiting request, or else on the one that the client listens on."""
        for waiter in self._waiters:
            if not waiter.lost and waiter.send(message):
                return waiter
        connection = self._connection
        stream = connection.listening_stream if self._alone and connection.is_heard_by(self._audience) else None
        if stream is None:
            return None
        stream.put(message)
        return _Listening(stream)

    def _send_to_waiter(self, message: bytes) -> Waiter | None:
        """Send on the stream of the latest waiting request, if possible one whose connection is not lost."""
        for waiter in sorted(self._waiters, key=lambda one: one.lost):
            if waiter.send(message):
                return waiter
        return None
