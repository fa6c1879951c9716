"""Writing whole HTTP responses, and the headers of event streams."""

from collections.abc import Sequence

from axolotl_core.protocol.wire import error_message
from axolotl_server.http.asgi import Send
from axolotl_server.http.refusals import HttpRefusal

__all__ = ["EVENT_STREAM_HEADERS", "JSON", "Headers", "send_empty", "send_json", "send_refusal"]

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
