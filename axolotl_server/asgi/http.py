"""What an application has around its endpoint: who may enter, and what is served beside it."""

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
    """The transport refuses the request; the message says what to change."""

    def __init__(self, status: int, message: str, *, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        """What the response says besides, such as a challenge."""


async def read_rest(first: Message, headers: Mapping[bytes, bytes], receive: Receive, max_bytes: int) -> bytes:
    """Read on after a first message that was not the whole body.

    Raises:
        HttpRefusal: 413 if it is too large, 400 if the client left.
    """
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
    return HttpRefusal(413, f"Content too large: a message may have {max_bytes} bytes")


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
    """Send a status and no body."""
    headers = [(b"content-length", b"0"), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def send_refusal(send: Send, refusal: HttpRefusal) -> None:
    """Send a refusal as a JSON-RPC error without an id."""
    extra = [(b"connection", b"close")] if refusal.status in (408, 413) else []
    extra += refusal.headers
    await send_json(send, refusal.status or 400, error_message(None, refusal, refusal.code), extra)


ServeRoute: TypeAlias = Callable[[Scope, Mapping[bytes, bytes], Receive, Send], Awaitable[None]]
"""Answers a request, whose headers are given once more as a mapping; may raise `HttpRefusal`."""


class IAuthenticator(Protocol):
    """Finds out on whose behalf a request is made, before its body is read."""

    async def admit(self, headers: Mapping[bytes, bytes]) -> Principal:
        """Give the principal.

        Raises:
            HttpRefusal: 401 with a challenge if nobody can be recognised, 503 if that cannot be found out now.
        """
        ...

    def demand(self, scopes: Iterable[str]) -> HttpRefusal:
        """Say which scopes a request needs that its principal does not have: 403 with a challenge that names them."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """Something that is served beside the endpoint, at one path."""

    serve: ServeRoute
    is_open: bool = False
    """Whether it answers whoever asks, by whatever name: probes know neither the Host nor a token."""


@dataclass(frozen=True, slots=True)
class Routing:
    """The gate and the routes of an application."""

    gate: IAuthenticator | None = None
    """None where everybody is anonymous."""
    routes: Mapping[str, Route] = field(default_factory=dict)
    """By path."""
