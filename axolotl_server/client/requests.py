"""Requests of a client: their streams, and everything that the revisions have in common."""

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final, NamedTuple, TypeAlias

from axolotl_core.protocol.identity import RequestId
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import log_text
from axolotl_server.client.channel import IChannel, Inbox, Message
from axolotl_server.client.replies import (
    EVERYTHING,
    Answering,
    Change,
    RemoteError,
    ServerDescription,
    UnansweredQuestion,
)
from axolotl_server.protocol.subscriptions import Listable

MAX_ROUNDS: Final = 50
"""How often a request is repeated with answers."""
_MAX_SHOWN_CHARACTERS: Final = 1000

MAX_PAGES: Final = 1000
"""How many pages of a list are read."""

OnNotification: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Gets the params of a notification; its exceptions are raised where the request is awaited."""


class Listeners(NamedTuple):
    """What gets the notifications about a request while it runs."""

    progress: OnNotification | None = None
    log: OnNotification | None = None


SILENT: Final = Listeners()


class Received(NamedTuple):
    """A notification of the server, or a request if it has an ID."""

    method: str
    params: Mapping[str, Any]
    id: RequestId | None = None


class Conversation:
    """One request with its own stream: every message that arrives belongs to it."""

    def __init__(self, channel: IChannel, request_id: int) -> None:
        self.inbox = Inbox()
        self.request_id = request_id
        self._channel = channel
        self._is_open = False
        self.result: Any = None
        self.takes_unclaimed = False
        """Whether it gets messages that belong to no request, such as log messages."""

    def begin(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the request."""
        self._is_open = True
        request = {"jsonrpc": "2.0", "id": self.request_id, "method": method, "params": params}
        self._channel.begin(request, self.inbox)

    async def receive(self) -> Received | None:
        """Wait for a message of the server; None when there is a result.

        Raises RemoteError if the answer is an error, and ConnectionError if the connection or the client was closed.
        """
        message = await self.inbox.take() if self._is_open else None
        if message is None or isinstance(message, Exception):
            self._is_open = False
            raise message or ConnectionError("The client was closed before the server answered")
        if "method" in message:
            return Received(message["method"], message.get("params") or {}, message.get("id"))
        self._is_open = False
        if "error" in message:
            error = message["error"]
            raise RemoteError(error["code"], error["message"], error.get("data"))
        self.result = message["result"]
        return None

    async def close(self) -> None:
        """Close the stream; an unanswered request is cancelled."""
        await self._channel.end(self.request_id, cancel=self._is_open)
        self.inbox.put(None)

    def orphaned_task(self) -> str | None:
        """Stop receiving, and return the ID of the task that the request became, if any."""
        self._is_open = False
        results = [self.result, *(message.get("result") for message in self.inbox.rest())]
        return next((task for result in results if result and (task := task_id_in(result)) is not None), None)


class Listening:
    """Changes as they happen: `async for change in changes`, or `await anext(changes)`.

    It ends when the server stops or the client is closed.
    """

    def __init__(self, receive: Callable[[], Any], accepted: Mapping[str, Any]) -> None:
        self._receive = receive
        self.accepted = accepted
        """The accepted subscriptions, in the form of the protocol."""

    def __aiter__(self) -> "Listening":
        return self

    async def __anext__(self) -> Change:
        try:
            received = await self._receive()
        except ConnectionError:
            received = None
        if received is None:
            raise StopAsyncIteration
        return Change(received.method, received.params.get("uri"))


class Requests(ABC):
    """Sends requests in the form of one revision, and keeps track of those that are open."""

    def __init__(
        self, channel: IChannel, revision: Revision, answer: Answering | None, capabilities: Mapping[str, Any] | None
    ) -> None:
        """Use a channel; without `capabilities`, a client that has an `answer` can answer everything."""
        usual = {} if answer is None else EVERYTHING
        self.revision = revision
        self._channel = channel
        self._answer = answer
        self._capabilities = usual if capabilities is None else capabilities
        self._ids = itertools.count(1)
        self._open: dict[RequestId, Conversation] = {}
        self._closed = False
        channel.unclaimed = self._hand_out

    @abstractmethod
    async def describe(self) -> ServerDescription:
        """Ask the server who it is and what it offers."""

    @abstractmethod
    async def finish(self, method: str, params: Mapping[str, Any], heard: Listeners) -> Any:
        """Send a request, and answer the questions of the server; raises what `Client.request` raises."""

    @abstractmethod
    async def run(self, method: str, params: Mapping[str, Any], heard: Listeners) -> Any:
        """Send a request as `finish` does; if it can only run as a task, wait for the end of the task."""

    @abstractmethod
    async def follow(self, task_id: str, heard: Listeners = SILENT) -> Any:
        """Wait for the end of a task, and return its result; raises what `Client.follow` raises."""

    @abstractmethod
    def listen(self, uris: Collection[str], lists: Collection[Listable]) -> AbstractAsyncContextManager[Listening]:
        """Listen for changes while the block runs."""

    async def follow_or_cancel(self, task_id: str, heard: Listeners = SILENT) -> Any:
        """Wait for the end of a task, and cancel it if nobody waits any more."""
        try:
            return await self.follow(task_id, heard)
        except BaseException:
            await self.cancel_task(task_id)
            raise

    async def cancel_task(self, task_id: str) -> None:
        """Cancel a task, if it still exists."""
        with suppress(ConnectionError, RemoteError):
            await self.send("tasks/cancel", {"taskId": task_id})

    @asynccontextmanager
    async def conversation(self) -> AsyncIterator[Conversation]:
        """Open the stream of one request, and close it after the block; raises ConnectionError if closed."""
        if self._closed:
            raise ConnectionError("The client is closed")
        conversation = Conversation(self._channel, next(self._ids))
        self._open[conversation.request_id] = conversation
        try:
            yield conversation
            await conversation.close()
        except BaseException:
            await conversation.close()
            task_id = conversation.orphaned_task()
            if task_id is not None:
                await self.cancel_task(task_id)
            raise
        finally:
            self._open.pop(conversation.request_id, None)

    async def close(self) -> None:
        """Cancel open requests, and send no more."""
        self._closed = True
        for conversation in tuple(self._open.values()):
            await conversation.close()
        await self._channel.close()

    async def send(self, method: str, params: Mapping[str, Any], heard: Listeners = SILENT) -> Any:
        """Send one request and wait for its result."""
        listeners = {"notifications/progress": heard.progress, "notifications/message": heard.log}
        async with self.conversation() as conversation:
            conversation.takes_unclaimed = True
            meta = await self._meta(params.get("_meta"), hears_log=heard.log is not None)
            if heard.progress is not None:
                meta.setdefault("progressToken", conversation.request_id)
            conversation.begin(method, {**params, "_meta": meta} if meta else params)
            while (received := await conversation.receive()) is not None:
                listener = listeners.get(received.method)
                if received.id is not None:
                    await self._reply(received)
                elif listener is not None:
                    listener(received.params)
            # Where tasks start eagerly, nothing has waited so far. A caller that polls must still let others run.
            await asyncio.sleep(0)
            return conversation.result

    @abstractmethod
    async def _meta(self, own: Mapping[str, Any] | None, *, hears_log: bool) -> dict[str, Any]:
        """Make the `_meta` of a request, which contains its own; ask for log messages of its level, or of all."""

    @abstractmethod
    async def _reply(self, received: Received) -> None:
        """Answer a request of the server."""

    def _hand_out(self, message: Message) -> None:
        """Give a message that belongs to no request, such as a log message, to all that wait for a result."""
        for conversation in self._open.values():
            if conversation.takes_unclaimed:
                conversation.inbox.put(message)


def task_id_in(result: Mapping[str, Any]) -> str | None:
    """Return the ID of the task that a request became, in either design of tasks; None if it became none."""
    task = result if result.get("resultType") == "task" else result.get("task")
    found = task.get("taskId") if isinstance(task, dict) else None
    return found if isinstance(found, str) else None


def is_asking(result: Mapping[str, Any]) -> bool:
    """Tell whether a result contains questions."""
    return result.get("resultType") == "input_required"


def unanswered(problem: str, result: Mapping[str, Any], given: Mapping[str, Any] = {}) -> UnansweredQuestion:
    """Make the error about questions without an answer, or with answers that the server did not accept."""
    asked = result.get("inputRequests", {})
    texts = [f"{problem}. Unanswered: {', '.join(asked)}"]
    for key, question in asked.items() if given else ():
        params = question.get("params") or {}
        text, expected = params.get("message", question["method"]), params.get("requestedSchema")
        texts.append(f"The question {key} is {_brief(text)}")
        if expected is not None:
            texts.append(f"It expects content of the form {_brief(expected)}")
        texts.append(f"The last answer was {_brief(given.get(key))}")
    return UnansweredQuestion(". ".join(texts), tuple(asked))


def _brief(value: Any) -> str:
    return log_text(value).decode()[:_MAX_SHOWN_CHARACTERS]
