"""A bare ASGI application that parses the body and sends a constant: the lower bound for any MCP server."""

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
import uvicorn

_Message = MutableMapping[str, Any]

# A valid reply to the call that the load makes, as long as that of a real server.
_REPLY = (
    b'{"jsonrpc":"2.0","id":100000,"result":{"content":[{"type":"text","text":"{\\"result\\":5}"}],'
    b'"structuredContent":{"result":5},"resultType":"complete",'
    b'"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"benchmark","version":"1.0.0"}}}}'
)
_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_REPLY))],
}
_BODY = {"type": "http.response.body", "body": _REPLY}


async def app(
    scope: _Message, receive: Callable[[], Awaitable[_Message]], send: Callable[[_Message], Awaitable[None]]
) -> None:
    """Read a body, parse it and reply."""
    message = await receive()
    body = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    msgspec.json.decode(body)
    await send(_START)
    await send(_BODY)


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        log_level="error",
        access_log=False,
    )
