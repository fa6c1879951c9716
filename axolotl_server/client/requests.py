"""Requests of the in-process client, with rounds of questions and tasks."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import msgspec

from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY, LOG_LEVEL_KEY, PROTOCOL_VERSION_KEY
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_core.protocol.wire import notification, request_message
from axolotl_server.client.outcomes import Answering, Change, RemoteError, TaskCancelled, UnansweredQuestion, answers_to
from axolotl_server.handler import DefaultHandler
from axolotl_server.transports.stream_exchange import StreamExchange


class Conversation:
    """One request with its own stream, as over HTTP: every message that arrives belongs to it."""

    def __init__(self, handler: DefaultHandler, principal: Principal, request_id: int) -> None:
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._exchange = StreamExchange(handler, self._inbox.put_nowait, principal)
        self.request_id = request_id
        self._begun = False
        self._ended = False
        self.result: Any = None

    def begin(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the request."""
        self._begun = True
        self._exchange.receive(request_message(self.request_id, method, params))

    async def receive(self) -> tuple[str, Mapping[str, Any]] | None:
        """Wait for a notification and return its method and params; None when there is a result.

        Raises RemoteError if the answer is an error, and ConnectionError if the client was closed.
        """
        message = None if self._ended else await self._inbox.get()
        if message is None:
            self._ended = True
            raise ConnectionError("The client was closed before the server answered")
        reply = msgspec.json.decode(message)
        if "method" in reply:
            return reply["method"], reply.get("params", {})
        self._ended = True
        if "error" in reply:
            error = reply["error"]
            raise RemoteError(error["code"], error["message"], error.get("data"))
        self.result = reply["result"]
        return None

    async def close(self) -> None:
        """Close the stream; an unanswered request is cancelled, and its code gets a moment to end."""
        if self._begun and not self._ended:
            self._exchange.receive(notification("notifications/cancelled", {"requestId": self.request_id}))
        await self._exchange.close(0.0)
        self._inbox.put_nowait(None)

    def orphaned_task(self) -> str | None:
        """Stop receiving, and return the ID of the task that the request became, if any."""
        self._ended = True
        results = [self.result]
        while not self._inbox.empty():
            message = self._inbox.get_nowait()
            results.append(None if message is None else msgspec.json.decode(message).get("result"))
        return next((result["taskId"] for result in results if result and "taskId" in result), None)


class Listening:
    """Changes as they happen: `async for change in changes`, or `await anext(changes)`.

    It ends when the server stops or the client is closed.
    """

    def __init__(self, conversation: Conversation, accepted: Mapping[str, Any]) -> None:
        self._conversation = conversation
        self.accepted = accepted
        """The accepted subscriptions, in the form of the protocol."""

    def __aiter__(self) -> "Listening":
        return self

    async def __anext__(self) -> Change:
        try:
            received = await self._conversation.receive()
        except ConnectionError:
            received = None
        if received is None:
            raise StopAsyncIteration
        method, params = received
        return Change(method, params.get("uri"))


OnNotification: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Gets the params of a notification; its exceptions are raised where the request is awaited."""

_MAX_ROUNDS: Final = 50


class Requests:
    """Sends requests, and keeps track of those that are open."""

    def __init__(
        self,
        handler: DefaultHandler,
        principal: Principal,
        answer: Answering | None,
        capabilities: Mapping[str, Any],
    ) -> None:
        self._handler = handler
        self._principal = principal
        self._answer = answer
        self._capabilities = capabilities
        self._ids = itertools.count(1)
        self._open: set[Conversation] = set()
        self._closed = False

    async def finish(
        self, method: str, params: Mapping[str, Any], on_progress: OnNotification | None, on_log: OnNotification | None
    ) -> Any:
        """Send a request, and repeat it with answers while the server asks.

        Raises RemoteError if the answer is an error, UnansweredQuestion if the server keeps asking, and ConnectionError
        if the client is closed.
        """
        result = await self._send(method, params, on_progress, on_log)
        rounds = 0
        while self._answer is not None and is_asking(result):
            rounds += 1
            if rounds > _MAX_ROUNDS:
                raise unanswered(
                    f"The server still asks after {_MAX_ROUNDS} rounds, as it does after wrong answers", result
                )
            next_params = {**params, **await answers_to(result, self._answer)}
            result = await self._send(method, next_params, on_progress, on_log)
        return result

    async def follow(self, task_id: str) -> Any:
        """Wait for the end of a task, answer its questions, and return its result.

        Raises RemoteError if it ends with an error, TaskCancelled if it was cancelled, UnansweredQuestion if it asks
        and there is no answer, and ConnectionError if the client is closed or the server stops.
        """
        async with self.conversation() as conversation:
            wanted = {"taskIds": [task_id]}
            conversation.begin("subscriptions/listen", {"notifications": wanted, "_meta": self.meta()})
            await conversation.receive()  # the acknowledgement
            task = await self._send("tasks/get", {"taskId": task_id}, None, None)
            answered: set[str] = set()
            while task["status"] in ("working", "input_required"):
                await self._update(task, answered)
                received = await conversation.receive()
                if received is None:
                    raise ConnectionError("The server stopped before the task ended")
                task = received[1]
        if "error" in task:
            raise RemoteError(task["error"]["code"], task["error"]["message"], task["error"].get("data"))
        if "result" not in task:
            raise TaskCancelled(task.get("statusMessage", "The task was cancelled"))
        return task["result"]

    async def cancel_task(self, task_id: str) -> None:
        """Cancel a task, if it still exists."""
        with suppress(ConnectionError, RemoteError):
            await self._send("tasks/cancel", {"taskId": task_id}, None, None)

    @asynccontextmanager
    async def conversation(self) -> AsyncIterator[Conversation]:
        """Open the stream of one request, and close it after the block; raises ConnectionError if closed."""
        if self._closed:
            raise ConnectionError("The client is closed")
        conversation = Conversation(self._handler, self._principal, next(self._ids))
        self._open.add(conversation)
        try:
            yield conversation
            await conversation.close()
        except BaseException:
            await self._abandon(conversation)
            raise
        finally:
            self._open.discard(conversation)

    def meta(self, own: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Make the `_meta` of a request, which contains its own."""
        version = LATEST_STATELESS_REVISION.name
        return {PROTOCOL_VERSION_KEY: version, CLIENT_CAPABILITIES_KEY: self._capabilities, **(own or {})}

    async def close(self) -> None:
        """Cancel open requests, and send no more."""
        self._closed = True
        for conversation in tuple(self._open):
            await conversation.close()

    async def _abandon(self, conversation: Conversation) -> None:
        """Close a conversation, and cancel the task that its request may have become."""
        await conversation.close()
        task_id = conversation.orphaned_task()
        if task_id is not None:
            await self.cancel_task(task_id)

    async def _update(self, task: Mapping[str, Any], answered: set[str]) -> None:
        unanswered_ones = {key: asked for key, asked in task.get("inputRequests", {}).items() if key not in answered}
        if not unanswered_ones:
            return
        asking = {"inputRequests": unanswered_ones}
        if self._answer is None:
            raise unanswered("The task asks, but the client has no answer: pass one to connect()", asking)
        answered.update(unanswered_ones)
        responses = await answers_to(asking, self._answer)
        await self._send("tasks/update", {"taskId": task["taskId"], **responses}, None, None)

    async def _send(
        self, method: str, params: Mapping[str, Any], on_progress: OnNotification | None, on_log: OnNotification | None
    ) -> Any:
        listeners = {"notifications/progress": on_progress, "notifications/message": on_log}
        async with self.conversation() as conversation:
            meta = self.meta(params.get("_meta"))
            if on_progress is not None:
                meta.setdefault("progressToken", conversation.request_id)
            if on_log is not None:
                meta.setdefault(LOG_LEVEL_KEY, "debug")
            conversation.begin(method, {**params, "_meta": meta})
            # Where tasks start eagerly, the reply may be there already. A caller that polls must still let others run.
            await asyncio.sleep(0)
            while (received := await conversation.receive()) is not None:
                listener = listeners.get(received[0])
                if listener is not None:
                    listener(received[1])
            return conversation.result


def is_asking(result: Mapping[str, Any]) -> bool:
    """Tell whether a result contains questions."""
    return result.get("resultType") == "input_required"


def is_task(result: Mapping[str, Any]) -> bool:
    """Tell whether a result is a task."""
    return result.get("resultType") == "task"


def unanswered(problem: str, result: Mapping[str, Any]) -> UnansweredQuestion:
    """Make the error about questions without an answer."""
    keys = tuple(result.get("inputRequests", {}))
    return UnansweredQuestion(f"{problem}. Unanswered: {', '.join(keys)}", keys)
