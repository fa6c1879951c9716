"""Channels between a client and a server: in memory, or over one shared stream of messages."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from axolotl_core.protocol.identity import Principal, RequestId
from axolotl_core.protocol.messages import SUBSCRIPTION_KEY
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import encode, notification
from axolotl_server.handler import DefaultHandler
from axolotl_server.protocol.flow_control import MAX_WAITING_BYTES, Backlog
from axolotl_server.transports.stream_exchange import StreamExchange

Message: TypeAlias = dict[str, Any]
"""A decoded JSON-RPC message."""

_log: Final = logging.getLogger("axolotl")


class InvalidReply(ConnectionError):
    """The server sent something that does not follow the protocol."""


class Inbox:
    """The messages that arrived for a request, or the error that ended its stream.

    If too many notifications are unread, `put` drops the oldest, and `put_when_room` waits.
    """

    def __init__(self) -> None:
        self._waiting: Backlog[Message | Exception | None] = Backlog()
        self._question_bytes = 0
        self._warn_at = 1
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self.is_complete = False
        """Whether the last message has arrived: the response, or an error."""

    def put(self, message: Message | Exception | None) -> None:
        """Add a message or an error; None means that the client was closed. Too many questions are an error."""
        if not isinstance(message, dict) or "method" not in message:
            self.is_complete = True
            self._waiting.put(message)
        elif self.is_complete:
            return  # nobody reads it
        elif "id" in message:
            size = _size(message)
            if self._question_bytes and self._question_bytes + size > MAX_WAITING_BYTES:
                text = f"The server sent more than {MAX_WAITING_BYTES} bytes of questions without waiting"
                self.put(InvalidReply(text))
                return
            self._question_bytes += size
            self._waiting.put(message)
        else:
            self._waiting.put(message, droppable_bytes=_size(message))
            if self._waiting.dropped >= self._warn_at:  # the first one, then ten times as many, and so on
                self._warn_at = 10 * self._waiting.dropped
                text = "a server sends more than this client reads; notifications dropped so far: %d"
                _log.warning(text, self._waiting.dropped)
        self._arrived.set()

    async def put_when_room(self, message: Message) -> None:
        """Add a message when there is room for it. Only a reader whose stream carries nothing else may wait."""
        while "method" in message and not self._waiting.has_room(_size(message)):
            self._taken.clear()
            await self._taken.wait()
        self.put(message)

    async def take(self) -> Message | Exception | None:
        """Wait for the next message."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        message = self._waiting.take()
        if isinstance(message, dict) and "method" in message and "id" in message:
            self._question_bytes -= _size(message)
        self._taken.set()
        return message

    def rest(self) -> list[Message]:
        """Take all unread messages."""
        waiting = [message for message in self._waiting if isinstance(message, dict)]
        self._waiting.clear()
        return waiting


def _size(message: Message) -> int:
    return len(encode(message))


class IChannel(ABC):
    """A way to a server and back."""

    def __init__(self) -> None:
        self.unclaimed: Callable[[Message], object] = lambda message: None
        """Gets the messages that belong to no request."""

    @abstractmethod
    def begin(self, request: Message, inbox: Inbox) -> None:
        """Send a request, whose messages go to the inbox."""

    @abstractmethod
    async def end(self, request_id: RequestId, *, cancel: bool) -> None:
        """Receive nothing more for a request, and cancel it if it is unanswered."""

    @abstractmethod
    async def send(self, message: Message) -> None:
        """Send a notification, or the answer to a question of the server."""

    @abstractmethod
    async def close(self) -> None:
        """Close the channel."""

    async def listen(self) -> None:  # noqa: B027 - only some need it
        """Receive messages that belong to no request, if that takes a stream of its own."""

    def use(self, revision: Revision | None) -> None:  # noqa: B027 - few channels need it
        """Use a revision from now on, if messages depend on it; None means that it is not known yet."""

    def learn(self, tools: list[dict[str, Any]]) -> None:  # noqa: B027 - few channels need it
        """Take note of the listed tools, if messages depend on them."""


class SharedChannel(IChannel):
    """A channel whose messages share one stream, such as stdio."""

    def __init__(self) -> None:
        super().__init__()
        self._inboxes: dict[RequestId, Inbox] = {}

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write a message."""

    def begin(self, request: Message, inbox: Inbox) -> None:
        self._inboxes[request["id"]] = inbox
        self.write(encode(request))

    async def end(self, request_id: RequestId, *, cancel: bool) -> None:
        self._inboxes.pop(request_id, None)
        if cancel:
            self.write(notification("notifications/cancelled", {"requestId": request_id}))

    async def send(self, message: Message) -> None:
        self.write(encode(message))

    def receive(self, message: Message) -> None:
        """Deliver a message to the request that it belongs to."""
        if "method" not in message:
            inbox = self._inboxes.pop(message["id"], None) if "id" in message else None
            if inbox is not None:
                inbox.put(message)
            return
        params = message.get("params") or {}
        key = params.get("progressToken", (params.get("_meta") or {}).get(SUBSCRIPTION_KEY))
        inbox = self._inboxes.get(key) if isinstance(key, int | str) else None
        (self.unclaimed if inbox is None else inbox.put)(message)

    def lose(self, error: Exception) -> None:
        """End all streams with an error."""
        for inbox in self._inboxes.values():
            inbox.put(error)
        self._inboxes.clear()


class MemoryChannel(IChannel):
    """A stateless channel to a handler in this process, with a stream for each request, as over HTTP."""

    def __init__(self, handler: DefaultHandler, principal: Principal) -> None:
        super().__init__()
        self._handler = handler
        self._principal = principal
        self._exchanges: dict[RequestId, StreamExchange] = {}

    def begin(self, request: Message, inbox: Inbox) -> None:
        exchange = StreamExchange(self._handler, lambda data: inbox.put(msgspec.json.decode(data)), self._principal)
        self._exchanges[request["id"]] = exchange
        exchange.receive(encode(request))

    async def end(self, request_id: RequestId, *, cancel: bool) -> None:
        """Close the stream; the code of a cancelled request gets a moment to end."""
        exchange = self._exchanges.pop(request_id, None)
        if exchange is not None:
            if cancel:
                exchange.receive(notification("notifications/cancelled", {"requestId": request_id}))
            await exchange.close(0.0)

    async def send(self, message: Message) -> None:
        """Send nothing: without a handshake, there are only requests."""

    async def close(self) -> None:
        """Nothing is open but streams."""


class MemoryPipe(SharedChannel):
    """A connection to a handler in this process, for revisions with a handshake."""

    def __init__(self, handler: DefaultHandler, principal: Principal) -> None:
        super().__init__()
        self._exchange = StreamExchange(handler, lambda data: self.receive(msgspec.json.decode(data)), principal)

    def write(self, data: bytes) -> None:
        self._exchange.receive(data)

    async def close(self) -> None:
        await self._exchange.close(0.0)


class _Answer(msgspec.Struct):
    """The members of a message that a client relies on."""

    jsonrpc: str
    id: int | str | None = None
    method: str | None = None
    params: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: "_ErrorMember | None" = None


class _ErrorMember(msgspec.Struct):
    code: int
    message: str


def read_messages(data: bytes) -> list[Message]:
    """Decode one message, or a batch of the revision that has them; raises InvalidReply."""
    try:
        decoded = msgspec.json.decode(data)
        messages = decoded if isinstance(decoded, list) else [decoded]
        for one in msgspec.convert(messages, list[_Answer]):
            if one.jsonrpc != "2.0" or (one.method is None and one.result is None and one.error is None):
                raise InvalidReply("The server sent JSON that is not a JSON-RPC message")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_json = isinstance(error, msgspec.ValidationError)
        kind = "a message that does not follow the protocol" if is_json else "no JSON"
        raise InvalidReply(f"The server sent {kind}: {error}") from None
    return messages
