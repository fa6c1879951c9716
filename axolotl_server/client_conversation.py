"""One request of the client in the same process, and all that the server says about it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.wire import notification, request_message
from axolotl_server.client_outcomes import Change, RemoteError
from axolotl_server.handler import DefaultHandler
from axolotl_server.transports.peer import StreamPeer

__all__ = ["Conversation", "Listening"]


class Conversation:
    """A request with a stream of its own, as over HTTP: whatever arrives is about this request."""

    def __init__(self, handler: DefaultHandler, principal: Principal, request_id: int) -> None:
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._peer = StreamPeer(handler, self._inbox.put_nowait, principal)
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
