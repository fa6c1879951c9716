"""Bare ASGI applications that compute, that answer with texts of any size, and that keep streams open."""

import asyncio
from typing import Any, Final

import msgspec

from benchmarks.servers.floor import BODY, START, Receive, Scope, Send, read_body
from benchmarks.servers.functions import spin

KEEP_ALIVE_SECONDS: Final = 15.0
_STREAM: Final = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
_ACKNOWLEDGED: Final = (
    b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":'
    b'{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}\n\n'
)


async def busy(scope: Scope, receive: Receive, send: Send) -> None:
    """Compute for some milliseconds and reply."""
    msgspec.json.decode(await read_body(receive))
    spin()
    await send(START)
    await send(BODY)


async def sized(scope: Scope, receive: Receive, send: Send) -> None:
    """Reply with the length of a text and a text of the given size."""
    message: dict[str, Any] = msgspec.json.decode(await read_body(receive))
    arguments = message["params"]["arguments"]
    text = f"{len(arguments['text'])} {'x' * arguments['size']}"
    body = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}
    )
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    """Acknowledge a subscription, and send a comment from time to time."""
    await read_body(receive)
    await send(_STREAM)
    await send({"type": "http.response.body", "body": _ACKNOWLEDGED, "more_body": True})
    while True:
        await asyncio.sleep(KEEP_ALIVE_SECONDS)
        await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
