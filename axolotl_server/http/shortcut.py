"""A shorter way out for plain replies under uvicorn.

By the ASGI rules a reply takes two messages, and uvicorn checks and copies each of its headers anew. The headers of a
plain reply are always the same, so its bytes can be written at once. Only the exact class that this was written for is
served this way, in the state in which its own `send` would write everything immediately; in all other cases the answer
is False, and the reply goes the ordinary way.
"""

from http import HTTPStatus
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from axolotl_server.http.asgi import Send

__all__ = ["reply_at_once"]

_START: Final = {
    status.value: b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: "
    % (status.value, status.phrase.encode())
    for status in HTTPStatus
}


def reply_at_once(send: Send, status: int, body: bytes) -> bool:
    """Write a whole JSON reply, if the server is uvicorn and nothing is in the way."""
    cycle: Any = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle:
        return False
    if cycle.response_started or cycle.disconnected or cycle.access_log:
        return False
    if not cycle.keep_alive or cycle.flow.write_paused:
        return False
    head = [_START[status], b"%d\r\n" % len(body)]
    for name, value in cycle.default_headers:
        head += (name, b": ", value, b"\r\n")
    cycle.transport.write(b"%b\r\n%b" % (b"".join(head), body))
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True
