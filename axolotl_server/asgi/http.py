"""Requests, responses and routes of an ASGI application."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from axolotl_core.errors import InvalidRequest
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
        self.status = status
        self.headers = headers
        """Additional headers of the response, such as a challenge."""


async def read_rest(first: Message, headers: Mapping[bytes, bytes], receive: Receive, max_bytes: int) -> bytes:
    """Read the rest of a body after its first message; refuse with 413 if it is too large, 400 if the client left."""
    announced = headers.get(b"content-length", b"0")
    if len(announced) > 19 or int(announced) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    message = first
    while True:
        if message["type"] == "http.disconnect":
            raise HttpRefusal(400, "Bad request: the client left before its body was complete")
        body += message.get("body", b"")
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
        if not message.get("more_body"):
            return bytes(body)
        message = await receive()


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
    await send_json(send, refusal.status or 400, error_message(None, refusal, refusal.code), extra)


ServeRoute: TypeAlias = Callable[[Scope, Mapping[bytes, bytes], Receive, Send], Awaitable[None]]
"""Serves a request, whose headers are also given as a mapping; may raise `HttpRefusal`."""


class IAuthenticator(Protocol):
    """Authenticates requests before their body is read."""

    async def admit(self, headers: Mapping[bytes, bytes]) -> Principal:
        """Return the principal; refuse with 401 and a challenge, or with 503 if tokens cannot be verified now."""
        ...

    def challenge(self, scopes: Iterable[str]) -> HttpRefusal:
        """Return a refusal with 403 and a challenge that names the missing scopes."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """A page or resource that is served at one path, besides the MCP endpoint."""

    serve: ServeRoute
    is_open: bool = False
    """Whether requests need neither a known Host nor a token, as health probes have neither."""


@dataclass(frozen=True, slots=True)
class Routing:
    """The gate and the routes of an application."""

    gate: IAuthenticator | None = None
    """None if all callers are anonymous."""
    routes: Mapping[str, Route] = field(default_factory=dict)
    """By path."""
