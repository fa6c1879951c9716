"""Requests, responses and routes of an ASGI application."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from axolotl_core.errors import InvalidRequest
from axolotl_core.protocol.codes import HEADER_MISMATCH
from axolotl_core.protocol.identity import Principal
from axolotl_core.protocol.wire import error_message

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class HttpRefusal(InvalidRequest):
    """A request that the transport refuses; the message says what to change."""

    def __init__(self, status: int, message: str, *, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(message)
        self.status: int = status
        self.headers = headers
        """Additional headers of the response, such as a challenge."""


RETRY_AFTER: Final = (b"retry-after", b"1")


def overloaded(message: str) -> HttpRefusal:
    """Make a refusal with 503 that tells programs, too, when to try again.

    No variable may hold it where it is raised: its traceback would keep the body of the message in a cycle.
    """
    refusal = HttpRefusal(503, message, headers=[RETRY_AFTER])
    refusal.data = {"reason": "overloaded", "retryAfterMs": 1000}
    return refusal


class RepeatedHeader(HttpRefusal):
    """A header of the protocol that was sent twice, and so cannot repeat the value of the body."""

    code = HEADER_MISMATCH


async def until_client_leaves(receive: Receive, leave: Callable[[], object]) -> None:
    """Wait until the client disconnects, then call `leave`."""
    while (await receive())["type"] != "http.disconnect":
        pass
    leave()


class IHttpRequest(Protocol):
    """A request that waits for its response."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the connection; to ask for the running one takes a system call before Python 3.12."""

    @property
    def receive(self) -> Receive:
        """Receives the body, and the disconnection of the client, in the messages of ASGI."""

    @property
    def send(self) -> Send:
        """Sends the response in the messages of ASGI."""

    @property
    def disconnected(self) -> bool:
        """Whether the client is known to have left."""

    @property
    def client(self) -> Sequence[Any] | None:
        """The address and port of the client; None if they are unknown."""

    def write_reply(self, status: int, body: bytes) -> bool:
        """Write a whole JSON reply; return False if it has to be sent by ASGI messages."""

    def watch(self, leave: Callable[[], object]) -> Callable[[], object]:
        """Call `leave` when the client disconnects; return a function that ends this."""

    async def fail(self, error: Exception) -> None:
        """Answer after an unexpected error."""

    def end(self) -> None:
        """Called when nothing more is done for the request."""


class AsgiRequest(NamedTuple):
    """A request of any ASGI server."""

    receive: Receive
    send: Send
    client: Sequence[Any] | None
    disconnected: bool = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop in which the application runs."""
        return asyncio.get_running_loop()

    def write_reply(self, status: int, body: bytes) -> bool:
        """Leave the reply to `send`."""
        return False

    def watch(self, leave: Callable[[], object]) -> Callable[[], object]:
        """Wait for the disconnection in a task."""
        return asyncio.get_running_loop().create_task(until_client_leaves(self.receive, leave)).cancel

    async def fail(self, error: Exception) -> None:
        """Leave the error to the ASGI server."""
        raise error

    def end(self) -> None:
        """Do nothing: the ASGI server knows when its application has returned."""


class BodyBudget:
    """A limit on the bytes of all bodies that have not arrived completely."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.used = 0

    def take(self, size: int) -> None:
        """Reserve bytes; refuse with 503 if too many are reserved."""
        if self.used + size > self._max_bytes:
            message = "Service unavailable: too many bodies are being received; try again"
            raise HttpRefusal(503, message, headers=[(b"connection", b"close"), RETRY_AFTER])
        self.used += size

    def give_back(self, size: int) -> None:
        """Release bytes that were reserved."""
        self.used -= size


LARGE_BODY_BYTES: Final = 64 * 1024
"""The size from which a body counts while its request is answered."""


class RunningBodies:
    """A limit on the bytes of large bodies whose requests are being answered, of which one caller may hold half.

    A running call keeps its message, and what was parsed from it. A body that is larger than the limit can be alone.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._by_share: Counter[Hashable] = Counter()
        self.used = 0

    @contextmanager
    def holding(self, size: int, share: Hashable | None) -> Iterator[None]:
        """Count a large body during the block; refuse it with 503 if there are too many."""
        mine = self._by_share[share] if share is not None else 0
        if (self.used and self.used + size > self._max_bytes) or (mine and mine + size > self._max_bytes // 2):
            raise overloaded("Service unavailable: too many large messages are being answered; try again")
        self.used += size
        self._by_share[share] += size
        try:
            yield
        finally:
            self.used -= size
            self._by_share[share] -= size
            if not self._by_share[share]:
                del self._by_share[share]


_PIECE_BYTES: Final = 64 * 1024
"""The size up to which pieces of a body are put together; a large one that grows would leave holes in memory."""


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, max_bytes: int, budget: BodyBudget) -> bytes:
    """Read the body of a request; refuse with 413 if it is too large, 400 if the client left, 503 beyond the budget."""
    announced = headers.get(b"content-length", b"0")
    if len(announced) > 19 or int(announced) > max_bytes:
        raise _too_large(max_bytes)
    piece, complete = await _receive_piece(receive)
    if complete and len(piece) <= max_bytes:
        return piece
    size, pieces = 0, [bytearray()]
    try:
        while True:
            if size + len(piece) > max_bytes:
                raise _too_large(max_bytes)
            budget.take(len(piece))
            size += len(piece)
            if len(pieces[-1]) < _PIECE_BYTES:
                pieces[-1] += piece
            else:
                pieces.append(bytearray(piece))
            if complete:
                return b"".join(pieces)
            del piece  # it would be held twice until the next one arrives
            piece, complete = await _receive_piece(receive)
    finally:
        budget.give_back(size)


async def _receive_piece(receive: Receive) -> tuple[bytes, bool]:
    """Receive a piece of a body, and whether it is the last one; refuse with 400 if the client left."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise HttpRefusal(400, "Bad request: the client left before its body was complete")
    return message.get("body", b""), not message.get("more_body")


def _too_large(max_bytes: int) -> HttpRefusal:
    return HttpRefusal(413, f"Content too large: a message may have at most {max_bytes} bytes")


Headers = list[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
EVENT_STREAM_HEADERS: Headers = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


async def send_json(send: Send, status: int, body: bytes, extra: Headers) -> None:
    """Send a JSON body."""
    headers = [JSON, (b"content-length", b"%d" % len(body)), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_empty(send: Send, status: int, extra: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Send a status without a body."""
    headers = [(b"content-length", b"0"), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def send_refusal(send: Send, refusal: HttpRefusal) -> None:
    """Send a refusal as a JSON-RPC error without an id."""
    extra = [(b"connection", b"close")] if refusal.status in (408, 413) else []
    extra += refusal.headers
    await send_json(send, refusal.status, error_message(None, refusal, refusal.code), extra)


ServeRoute: TypeAlias = Callable[[Scope, Mapping[bytes, bytes], Receive, Send], Awaitable[None]]
"""Serves a request, whose headers are also given as a mapping; may raise `HttpRefusal`."""


class IAuthenticator(Protocol):
    """Authenticates requests before their body is read."""

    async def admit(
        self, credentials: bytes | None, client: Sequence[Any] | None, headers: Mapping[bytes, bytes]
    ) -> Principal:
        """Return the principal of an Authorization header.

        `client` is the address of the connection, and `headers` are the other headers, in which proxies may report the
        address of the client. Refuse with 401 and a challenge, or with 503 if tokens cannot be verified now.
        """

    def challenge(self, scopes: Iterable[str]) -> HttpRefusal:
        """Return a refusal with 403 and a challenge that names the missing scopes."""


class PrincipalGate(IAuthenticator):
    """Authenticates every request as one principal, in development."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    async def admit(
        self, credentials: bytes | None, client: Sequence[Any] | None, headers: Mapping[bytes, bytes]
    ) -> Principal:
        return self._principal

    def challenge(self, scopes: Iterable[str]) -> HttpRefusal:
        missing = ", ".join(sorted({*scopes} - self._principal.scopes))
        return HttpRefusal(403, f"{self._principal.subject} lacks these scopes: {missing}")


class Route(msgspec.Struct, frozen=True):
    """A page or resource that is served at one path, besides the MCP endpoint."""

    serve: ServeRoute
    is_open: bool = False
    """Whether requests need neither a known Host nor a token, as health probes have neither."""
