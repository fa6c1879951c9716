"""Channels between a client and a server: in memory, or over one shared stream of messages."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from axolotl_core.protocol.identity import Principal, RequestId
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import encode, notification
from axolotl_server.handler import DefaultHandler
from axolotl_server.transports.stream_exchange import StreamExchange

Message: TypeAlias = dict[str, Any]
"""A decoded JSON-RPC message."""

SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
_CROWDED: Final = 1000
"""How many messages may wait for their reader before no more are read from a connection."""


class InvalidReply(ConnectionError):
    """The server sent something that does not follow the protocol."""


class Inbox:
    """The messages that arrived for a request, or the error that ended its stream."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Message | Exception | None] = asyncio.Queue()
        self._taken = asyncio.Event()
        self.is_complete = False
        """Whether the last message has arrived: the response, or an error."""

    def put(self, message: Message | Exception | None) -> None:
        """Add a message or an error; None means that the client was closed."""
        self.is_complete = self.is_complete or not isinstance(message, dict) or "method" not in message
        self._queue.put_nowait(message)

    async def take(self) -> Message | Exception | None:
        """Wait for the next message."""
        message = await self._queue.get()
        self._taken.set()
        return message

    async def wait_for_room(self) -> None:
        """Wait until few messages are unread, so that a server cannot fill the memory."""
        while self._queue.qsize() > _CROWDED:
            self._taken.clear()
            await self._taken.wait()

    def rest(self) -> list[Message]:
        """Take all unread messages."""
        waiting = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        return [message for message in waiting if isinstance(message, dict)]


class IStream(ABC):
    """The messages of one request."""

    @abstractmethod
    def begin(self, request: Message) -> None:
        """Send the request."""

    @abstractmethod
    async def close(self, unanswered: RequestId | None) -> None:
        """Stop receiving; the request with this ID is cancelled."""


class IChannel(ABC):
    """A way to a server and back."""

    @abstractmethod
    def open(self, inbox: Inbox) -> IStream:
        """Prepare the stream of one request, whose messages go to the inbox."""

    @abstractmethod
    async def close(self) -> None:
        """Close the channel."""

    def use(self, revision: Revision | None) -> None:  # noqa: B027 - few channels need it
        """Use a revision from now on, if messages depend on it; None means that it is not known yet."""

    def learn(self, tools: list[dict[str, Any]]) -> None:  # noqa: B027 - few channels need it
        """Take note of the listed tools, if messages depend on them."""


class IDuplexChannel(IChannel):
    """A channel on which the server can ask, too, as the revisions with a handshake need it."""

    def __init__(self) -> None:
        self.unclaimed: Callable[[Message], object] = lambda message: None
        """Gets the messages that belong to the stream of no request."""

    @abstractmethod
    async def send(self, message: Message) -> None:
        """Send a notification, or the answer to a question of the server."""

    async def listen(self) -> None:
        """Receive messages that belong to no request, if that takes a stream of its own."""


class MemoryChannel(IChannel):
    """A stateless channel to a handler in this process, with a stream for each request, as over HTTP."""

    def __init__(self, handler: DefaultHandler, principal: Principal) -> None:
        self._handler = handler
        self._principal = principal

    def open(self, inbox: Inbox) -> IStream:
        return _MemoryStream(self._handler, self._principal, inbox)

    async def close(self) -> None:
        """Nothing is open but streams."""


class _MemoryStream(IStream):
    def __init__(self, handler: DefaultHandler, principal: Principal, inbox: Inbox) -> None:
        self._exchange = StreamExchange(handler, lambda data: inbox.put(msgspec.json.decode(data)), principal)

    def begin(self, request: Message) -> None:
        self._exchange.receive(encode(request))

    async def close(self, unanswered: RequestId | None) -> None:
        """Close the stream; the code of a cancelled request gets a moment to end."""
        if unanswered is not None:
            self._exchange.receive(notification("notifications/cancelled", {"requestId": unanswered}))
        await self._exchange.close(0.0)


class SharedChannel(IDuplexChannel):
    """A channel whose messages share one stream, such as stdio."""

    def __init__(self) -> None:
        super().__init__()
        self._inboxes: dict[RequestId, Inbox] = {}

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write a message."""

    def open(self, inbox: Inbox) -> IStream:
        return _SharedStream(self, inbox)

    async def send(self, message: Message) -> None:
        self.write(encode(message))

    def claim(self, request: Message, inbox: Inbox) -> None:
        """Send a request, and deliver its messages to the inbox."""
        self._inboxes[request["id"]] = inbox
        self.write(encode(request))

    def disclaim(self, inbox: Inbox) -> None:
        """Deliver no more messages to the inbox."""
        self._inboxes = {key: one for key, one in self._inboxes.items() if one is not inbox}

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


class _SharedStream(IStream):
    def __init__(self, channel: SharedChannel, inbox: Inbox) -> None:
        self._channel = channel
        self._inbox = inbox

    def begin(self, request: Message) -> None:
        self._channel.claim(request, self._inbox)

    async def close(self, unanswered: RequestId | None) -> None:
        self._channel.disclaim(self._inbox)
        if unanswered is not None:
            self._channel.write(notification("notifications/cancelled", {"requestId": unanswered}))


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
        kind = (
            "a message that does not follow the protocol" if isinstance(error, msgspec.ValidationError) else "no JSON"
        )
        raise InvalidReply(f"The server sent {kind}: {error}") from None
    return messages
