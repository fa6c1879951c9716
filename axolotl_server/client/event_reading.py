"""Server-sent events, parsed strictly and within limits, and their delivery as messages."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Final, TypeAlias

import msgspec

from axolotl_core.protocol.identity import RequestId
from axolotl_server.client.channel import InvalidReply, Message, read_messages

_Put: TypeAlias = Callable[[Message], Awaitable[None]]

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_USUAL_RETRY_SECONDS: Final = 1.0
_MIN_RETRY_SECONDS: Final = 0.1
_MAX_RETRY_SECONDS: Final = 30.0


class ClientLimits(msgspec.Struct, frozen=True):
    """Limits that protect a client from its server."""

    connect_seconds: float = 10.0
    """How long to wait for a connection, and for the answer to the first request."""
    silence_seconds: float = 300.0
    """How long a server may send nothing while a request runs."""
    max_message_bytes: int = 16 * 1024 * 1024
    max_response_bytes: int = 64 * 1024 * 1024
    """The size of all messages that answer one request."""
    max_reconnects: int = 5
    """How often in a row a lost stream is resumed without receiving anything."""


class ServerEvent(msgspec.Struct):
    """One event; the event that only carries an ID has empty data."""

    data: bytes
    id: str | None
    """The ID of the last event that had one."""
    retry_milliseconds: int | None


class EventParser:
    """Splits the bytes of a stream into events; the incomplete event at the end of a stream is dropped."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._is_first = True
        self._after_carriage_return = False
        self._line: list[bytes] = []
        self._size = 0
        self._data: list[bytes] = []
        self._name = b"message"
        self._id: str | None = None
        self._retry: int | None = None

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Parse the next bytes; raises InvalidReply if an event is too large."""
        if self._after_carriage_return and piece.startswith(b"\n"):
            piece = piece[1:]
        if not piece:
            return
        self._after_carriage_return = piece.endswith(b"\r")
        *lines, rest = _LINE_END.split(piece)
        for line in lines:
            self._size += len(line)
            self._check_size()
            whole = b"".join((*self._line, line))
            self._line.clear()
            yield from self._read_line(whole)
        self._line.append(rest)
        self._size += len(rest)
        self._check_size()

    def _check_size(self) -> None:
        if self._size > self._max_bytes:
            raise InvalidReply(f"The server sent too much: an event is larger than {self._max_bytes} bytes")

    def _read_line(self, line: bytes) -> Iterator[ServerEvent]:
        if self._is_first:
            line, self._is_first = line.removeprefix(_BYTE_ORDER_MARK), False
        if not line:
            if self._data and self._name == b"message":
                yield ServerEvent(b"\n".join(self._data), self._id, self._retry)
            self._data, self._name, self._retry, self._size = [], b"message", None, 0
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif field == b"event":
            self._name = value or b"message"
        elif field == b"retry" and value.isdigit():
            self._retry = int(value[:9])


class StreamReceiver:
    """Receives the messages of one request, over as many connections as that takes."""

    def __init__(self, request_id: RequestId | None, put: _Put, limits: ClientLimits, *, is_endless: bool) -> None:
        self.request_id = request_id
        self.last_id: str | None = None
        self.retry_seconds = _USUAL_RETRY_SECONDS
        self.is_done = False
        self._put = put
        self._limits = limits
        self._is_endless = is_endless
        self._received_bytes = 0
        self._reconnects = 0

    async def read_events(self, pieces: AsyncIterator[bytes]) -> None:
        """Deliver the messages of an event stream, until its end or the response."""
        parser = EventParser(self._limits.max_message_bytes)
        async for piece in pieces:
            self._received_bytes += len(piece)
            if self._received_bytes > self._limits.max_response_bytes and not self._is_endless:
                raise InvalidReply(f"The server sent more than {self._limits.max_response_bytes} bytes")
            for event in parser.feed(piece):
                await self._receive(event)
                if self.is_done:
                    return

    async def _receive(self, event: ServerEvent) -> None:
        self.last_id = event.id or self.last_id
        if event.retry_milliseconds is not None:
            self.retry_seconds = min(max(event.retry_milliseconds / 1000, _MIN_RETRY_SECONDS), _MAX_RETRY_SECONDS)
        if event.data:
            self._reconnects = 0
            for message in read_messages(event.data):
                await self.deliver(message)

    async def deliver(self, message: Message) -> None:
        """Deliver a message; the response to the request is the last one."""
        if "method" not in message:
            if message.get("id") != self.request_id:
                return  # a response to somebody else
            self.is_done = True
        await self._put(message)

    def count_reconnect(self) -> None:
        """Count an attempt to resume the stream; raises ConnectionError if it is not possible."""
        self._reconnects += 1
        if self.last_id is None:
            raise ConnectionError("The server closed the connection before it answered")
        if self._reconnects > self._limits.max_reconnects:
            raise ConnectionError(f"The connection was lost, and {self._limits.max_reconnects} reconnects failed")
