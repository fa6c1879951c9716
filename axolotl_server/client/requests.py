"""Requests of the client in the same process: sent, heard to their end, and sent again with answers."""

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
    """A request with a stream of its own, as over HTTP: whatever arrives is about this request."""

    def __init__(self, handler: DefaultHandler, principal: Principal, request_id: int) -> None:
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._peer = StreamExchange(handler, self._inbox.put_nowait, principal)
        self.request_id = request_id
        self._begun = False
        self._ended = False
        self.result: Any = None

    def begin(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the request."""
        self._begun = True
        self._peer.receive(request_message(self.request_id, method, params))

    async def hear(self) -> tuple[str, Mapping[str, Any]] | None:
        """Wait for a notification, its method and its params; None when there is a result.

        Raises:
            RemoteError: if the answer is an error.
            ConnectionError: if there will be none, because the client was closed.
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
        """End it; a request that is not answered yet is cancelled, and its code has a moment to end."""
        if self._begun and not self._ended:
            self._peer.receive(notification("notifications/cancelled", {"requestId": self.request_id}))
        await self._peer.close(0.0)
        self._inbox.put_nowait(None)

    def unwanted_task(self) -> str | None:
        """Hear no more; give the task that the request became, which nobody knows of then."""
        self._ended = True
        results = [self.result]
        while not self._inbox.empty():
            message = self._inbox.get_nowait()
            results.append(None if message is None else msgspec.json.decode(message).get("result"))
        return next((result["taskId"] for result in results if result and "taskId" in result), None)


class Listening:
    """Changes as they come: `async for change in changes`, or `await anext(changes)`.

    It ends when the server or the client does.
    """

    def __init__(self, conversation: Conversation, accepted: Mapping[str, Any]) -> None:
        self._conversation = conversation
        self.accepted = accepted
        """What the server will tell of, in the words of the protocol."""

    def __aiter__(self) -> "Listening":
        return self

    async def __anext__(self) -> Change:
        try:
            heard = await self._conversation.hear()
        except ConnectionError:
            heard = None
        if heard is None:
            raise StopAsyncIteration
        method, params = heard
        return Change(method, params.get("uri"))


OnTold: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Takes the params of a notification; what it raises is raised where the request is awaited."""

_MAX_ROUNDS: Final = 50


class Requests:
    """Sends requests, any number at once, and knows those that are open."""

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
        self, method: str, params: Mapping[str, Any], on_progress: OnTold | None, on_log: OnTold | None
    ) -> Any:
        """Send a request, and send it again with answers for as long as the server asks.

        Raises:
            RemoteError: if the answer is an error.
            UnansweredQuestion: if the server never stops asking.
            ConnectionError: if the client is closed.
        """
        result = await self._exchange(method, params, on_progress, on_log)
        rounds = 0
        while self._answer is not None and is_asking(result):
            rounds += 1
            if rounds > _MAX_ROUNDS:
                raise unanswered(
                    f"After {_MAX_ROUNDS} rounds the server still asks, as it does after wrong answers", result
                )
            again = {**params, **await answers_to(result, self._answer)}
            result = await self._exchange(method, again, on_progress, on_log)
        return result

    async def follow(self, task_id: str) -> Any:
        """Wait for the end of a task and give its result, answering what it asks.

        Raises:
            RemoteError: if it ends with an error.
            TaskCancelled: if it is ended without a result.
            UnansweredQuestion: if it asks and there is nobody to answer.
            ConnectionError: if the client is closed, or the server ends.
        """
        async with self.conversation() as conversation:
            wanted = {"taskIds": [task_id]}
            conversation.begin("subscriptions/listen", {"notifications": wanted, "_meta": self.meta()})
            await conversation.hear()  # that changes will be told
            task = await self._exchange("tasks/get", {"taskId": task_id}, None, None)
            answered: set[str] = set()
            while task["status"] in ("working", "input_required"):
                await self._update(task, answered)
                heard = await conversation.hear()
                if heard is None:
                    raise ConnectionError("The server has ended before the task did")
                task = heard[1]
        if "error" in task:
            raise RemoteError(task["error"]["code"], task["error"]["message"], task["error"].get("data"))
        if "result" not in task:
            raise TaskCancelled(task.get("statusMessage", "The task was cancelled"))
        return task["result"]

    async def cancel_task(self, task_id: str) -> None:
        """End a task whose result nobody wants, if it is still there."""
        with suppress(ConnectionError, RemoteError):
            await self._exchange("tasks/cancel", {"taskId": task_id}, None, None)

    @asynccontextmanager
    async def conversation(self) -> AsyncIterator[Conversation]:
        """Open the stream of one request; it is closed, and the request cancelled if need be, with the block.

        Raises:
            ConnectionError: if the client is closed.
        """
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
        """Write the `_meta` that every request needs, beside its own."""
        version = LATEST_STATELESS_REVISION.name
        return {PROTOCOL_VERSION_KEY: version, CLIENT_CAPABILITIES_KEY: self._capabilities, **(own or {})}

    async def close(self) -> None:
        """Cancel what is open and send nothing any more."""
        self._closed = True
        for conversation in tuple(self._open):
            await conversation.close()

    async def _abandon(self, conversation: Conversation) -> None:
        """Close a conversation that nobody waits for, and end the task that may have come of it."""
        await conversation.close()
        task_id = conversation.unwanted_task()
        if task_id is not None:
            await self.cancel_task(task_id)

    async def _update(self, task: Mapping[str, Any], answered: set[str]) -> None:
        """Answer the questions of a task that have no answer yet."""
        fresh = {key: asked for key, asked in task.get("inputRequests", {}).items() if key not in answered}
        if not fresh:
            return
        asking = {"inputRequests": fresh}
        if self._answer is None:
            raise unanswered("The task asks, and nobody answers: give connect() an answer", asking)
        answered.update(fresh)
        responses = await answers_to(asking, self._answer)
        await self._exchange("tasks/update", {"taskId": task["taskId"], **responses}, None, None)

    async def _exchange(
        self, method: str, params: Mapping[str, Any], on_progress: OnTold | None, on_log: OnTold | None
    ) -> Any:
        """Send one request and hear what is said until it is answered."""
        told = {"notifications/progress": on_progress, "notifications/message": on_log}
        async with self.conversation() as conversation:
            meta = self.meta(params.get("_meta"))
            if on_progress is not None:
                meta.setdefault("progressToken", conversation.request_id)
            if on_log is not None:
                meta.setdefault(LOG_LEVEL_KEY, "debug")
            conversation.begin(method, {**params, "_meta": meta})
            while (heard := await conversation.hear()) is not None:
                tell = told.get(heard[0])
                if tell is not None:
                    tell(heard[1])
            return conversation.result


def is_asking(result: Mapping[str, Any]) -> bool:
    """Tell whether a result is no answer but questions."""
    return result.get("resultType") == "input_required"


def is_task(result: Mapping[str, Any]) -> bool:
    """Tell whether a result is no answer but the task that will have one."""
    return result.get("resultType") == "task"


def unanswered(problem: str, result: Mapping[str, Any]) -> UnansweredQuestion:
    """Name the questions of a result that nobody answers."""
    keys = tuple(result.get("inputRequests", {}))
    return UnansweredQuestion(f"{problem}: {', '.join(keys)}", keys)
