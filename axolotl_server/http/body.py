"""Reading a request's body, up to a size."""

from collections.abc import Mapping

from axolotl_server.http.asgi import Message, Receive
from axolotl_server.http.refusals import HttpRefusal

__all__ = ["read_rest"]


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
