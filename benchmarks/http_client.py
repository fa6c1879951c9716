"""A minimal HTTP/1.1 client on raw keep-alive sockets, with one request at a time per connection."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import uvloop

from benchmarks.errors import BenchmarkError

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_END_OF_HEAD = b"\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
_OK = b"HTTP/1.1 200"
_REPLY_SECONDS = 120.0


@dataclass(frozen=True)
class Response:
    """The raw parts of a response."""

    head: bytes
    body: bytes

    def header(self, name: str) -> str:
        """Return the value of a header, or an empty string."""
        found = re.search(rb"\r\n%b: *([^\r]*)" % name.encode(), self.head, re.IGNORECASE)
        return found[1].decode() if found else ""


class Connection(asyncio.Protocol):
    """A connection that sends prepared requests one after the other and checks each response."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._pending: list[bytes] = []
        self._expected = b""
        self._done: asyncio.Future[Response] | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send_all(self, requests: Sequence[bytes], expected: bytes) -> "asyncio.Future[Response]":
        """Send the requests in turn. The future holds the last response, and fails at the first unexpected one."""
        return self.send_pending(list(reversed(requests)), expected)

    def send_pending(self, pending: list[bytes], expected: bytes) -> "asyncio.Future[Response]":
        """Send the last request of a list again and again, until none is left. Connections can share the list."""
        self._pending = pending
        self._expected = expected
        self._done = asyncio.get_running_loop().create_future()
        self._send_next()
        return self._done

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Send the next request when the response is complete."""
        self._buffer += data
        response = self._complete()
        if response is None:
            return
        self._buffer.clear()
        if self._expected not in response.body or (self._expected and not response.head.startswith(_OK)):
            self._fail(f"unexpected reply: {response.head[:15].decode()} {response.body[:200].decode()}")
        elif self._pending:
            self._send_next()
        elif self._done is not None:
            self._done.set_result(response)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("the server closed the connection")

    def _send_next(self) -> None:
        if self._transport is not None:
            self._transport.write(self._pending.pop())

    def _fail(self, reason: str) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(BenchmarkError(reason))

    def _complete(self) -> Response | None:
        """Return the response once the buffer contains all of it."""
        end = self._buffer.find(_END_OF_HEAD)
        if end < 0:
            return None
        start = end + len(_END_OF_HEAD)
        length = _LENGTH.search(self._buffer, 0, end)
        if length and len(self._buffer) - start < int(length[1]):
            return None
        if not length and not self._buffer.endswith(_LAST_CHUNK):
            return None
        return Response(bytes(self._buffer[:end]), bytes(self._buffer[start:]))


class HttpClient:
    """Several connections to one server, driven by a separate event loop."""

    def __init__(self, port: int, connections: int) -> None:
        self._port = port
        self._count = connections
        self._connections: list[Connection] = []
        self._loop = uvloop.new_event_loop()

    def connect(self) -> None:
        """Open new connections: servers close those that were idle while other contenders were measured."""
        self._loop.run_until_complete(self._connect())

    def exchange(self, request: bytes, connection: int = 0) -> Response:
        """Send one request and return its response, even if it is an error."""
        return self._loop.run_until_complete(self._send([[request]], b"", connection))

    def run(self, batches: Sequence[Sequence[bytes]], expected: bytes) -> Response:
        """Send one batch of requests per connection, all at the same time, and return one of the responses.

        Raises BenchmarkError if a response lacks the expected bytes or the server is gone.
        """
        return self._loop.run_until_complete(self._send(batches, expected, 0))

    def run_shared(self, requests: Sequence[bytes], expected: bytes) -> None:
        """Send requests over all connections: each takes the next one when its response has arrived.

        Raises BenchmarkError if a response lacks the expected bytes or the server is gone.
        """
        self._loop.run_until_complete(self._send_shared(list(reversed(requests)), expected))

    def close(self) -> None:
        self._loop.run_until_complete(self._disconnect())
        self._loop.close()

    async def _connect(self) -> None:
        await self._disconnect()
        loop = asyncio.get_running_loop()
        try:
            self._connections = [
                (await loop.create_connection(Connection, "127.0.0.1", self._port))[1] for _ in range(self._count)
            ]
        except OSError as error:
            raise BenchmarkError(f"the server does not accept connections: {error}") from error

    async def _disconnect(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections = []
        await asyncio.sleep(0)

    async def _send(self, batches: Sequence[Sequence[bytes]], expected: bytes, first: int) -> Response:
        return await self._all(
            connection.send_all(batch, expected)
            for connection, batch in zip(self._connections[first:], batches, strict=False)
        )

    async def _send_shared(self, pending: list[bytes], expected: bytes) -> None:
        await self._all(connection.send_pending(pending, expected) for connection in self._connections)

    async def _all(self, running: "Iterable[asyncio.Future[Response]]") -> Response:
        try:
            answers = await asyncio.wait_for(asyncio.gather(*running), _REPLY_SECONDS)
        except TimeoutError as error:
            raise BenchmarkError("no reply in time") from error
        return answers[0]
