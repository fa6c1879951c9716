"""A bare ASGI application that parses the body and sends a constant: the lower bound for any MCP server."""

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
import uvicorn

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]

# A valid reply to the call that the load makes, as long as that of a real server.
_REPLY = (
    b'{"jsonrpc":"2.0","id":100000,"result":{"content":[{"type":"text","text":"{\\"result\\":5}"}],'
    b'"structuredContent":{"result":5},"resultType":"complete",'
    b'"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"benchmark","version":"1.0.0"}}}}'
)
START: Scope = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_REPLY))],
}
BODY: Scope = {"type": "http.response.body", "body": _REPLY}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Read a body, parse it and reply."""
    message = await receive()
    body = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    msgspec.json.decode(body)
    await send(START)
    await send(BODY)


async def read_body(receive: Receive) -> bytes:
    """Read a whole body."""
    message = await receive()
    chunks = [message["body"]]
    while message.get("more_body"):
        message = await receive()
        chunks.append(message["body"])
    return b"".join(chunks)


if __name__ == "__main__":
    from benchmarks.servers import floor_variants

    uvicorn.run(
        getattr(floor_variants, sys.argv[2], app),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        log_level="error",
        access_log=False,
    )
