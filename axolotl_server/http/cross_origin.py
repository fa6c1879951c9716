"""Pages of other origins: the browser asks before it sends their requests, and hides answers that do not name them."""

import re
from collections.abc import Mapping
from typing import Final

from axolotl_server.asgi.http import Headers, HttpRefusal, Message, Receive, Scope, Send, send_empty, send_refusal
from axolotl_server.http.app import HttpApp

_ALLOW_ORIGIN: Final = b"access-control-allow-origin"
_EXPOSED: Final = (b"access-control-expose-headers", b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate")
_KNOWN: Final = frozenset(
    {b"accept", b"authorization", b"baggage", b"content-type", b"last-event-id", b"traceparent", b"tracestate"}
)
_OF_THE_PROTOCOL: Final = re.compile(rb"mcp-[!#$%&'*+.^_`|~0-9a-z-]+")
_METHODS: Final = (b"access-control-allow-methods", b"GET, POST, DELETE")
_MAX_AGE: Final = (b"access-control-max-age", b"3600")
_MOST_NAMES: Final = 100


class CrossOriginApp(HttpApp):
    """Speaks to pages of the allowed origins too; for all other requests it is the application without them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        origin = _origin_of(scope)
        if origin is None or not self._checks.allows_pages_of(origin):
            await super().__call__(scope, receive, send)
        elif scope["method"] == "OPTIONS" and self._serves(scope["path"]):
            await self._answer_preflight(scope, origin, send)
        else:
            await super().__call__(scope, receive, _naming(origin, send))

    def _serves(self, path: str) -> bool:
        return path == self._path or (self._sse is not None and self._sse.serves(path))

    async def _answer_preflight(self, scope: Scope, origin: bytes, send: Send) -> None:
        """Say what a page may send; who it is shows the request itself, which has a token."""
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        try:
            self._checks.check_source(headers)
            await send_empty(send, 204, [*_named(origin), _METHODS, *_allowed_names(headers), _MAX_AGE])
        except HttpRefusal as refusal:
            await send_refusal(send, refusal)


def _origin_of(scope: Scope) -> bytes | None:
    """Give the one origin that a request names; None where that is none, or not one."""
    if scope["type"] != "http":
        return None
    named: list[bytes] = [value for name, value in scope["headers"] if name == b"origin"]
    return named[0] if len(named) == 1 else None


def _naming(origin: bytes, send: Send) -> Send:
    """Let the browser show the answer to the page, unless the answer says itself who may read it."""

    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start" and all(name != _ALLOW_ORIGIN for name, _ in message["headers"]):
            message["headers"] = [*message["headers"], *_named(origin), _EXPOSED]
        await send(message)

    return send_named


def _named(origin: bytes) -> Headers:
    return [(_ALLOW_ORIGIN, origin), (b"vary", b"Origin")]


def _allowed_names(headers: Mapping[bytes, bytes]) -> Headers:
    """Allow those of the headers a page wants to send that the protocol has; some are named by tools."""
    wanted = (name.strip().lower() for name in headers.get(b"access-control-request-headers", b"").split(b","))
    allowed = [name for name in wanted if name in _KNOWN or _OF_THE_PROTOCOL.fullmatch(name)]
    return [(b"access-control-allow-headers", b", ".join(allowed[:_MOST_NAMES]))] if allowed else []
