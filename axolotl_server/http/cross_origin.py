"""Cross-origin resource sharing (CORS), for web pages of other origins."""

import re
from collections.abc import Mapping
from typing import Final

from axolotl_server.http.app import HttpApp
from axolotl_server.http.asgi import Headers, HttpRefusal, Message, Receive, Scope, Send, send_empty, send_refusal

_ALLOW_ORIGIN: Final = b"access-control-allow-origin"
_EXPOSED: Final = (b"access-control-expose-headers", b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate")
_KNOWN: Final = frozenset(
    {b"accept", b"authorization", b"baggage", b"content-type", b"last-event-id", b"traceparent", b"tracestate"}
)
_PROTOCOL_HEADER: Final = re.compile(rb"mcp-[!#$%&'*+.^_`|~0-9a-z-]+")
_METHODS: Final = (b"access-control-allow-methods", b"GET, POST, DELETE")
_MAX_AGE: Final = (b"access-control-max-age", b"3600")
_MAX_NAMES: Final = 100


class CrossOriginApp(HttpApp):
    """The application with CORS for the allowed origins; other requests are served as without it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        origin = _origin_of(scope)
        if origin is None or not self.checks.allows_pages_of(origin):
            await super().__call__(scope, receive, send)
        elif scope["method"] == "OPTIONS" and self._serves(scope["path"]):
            await self._answer_preflight(scope, origin, send)
        else:
            await super().__call__(scope, receive, _naming(origin, send))

    def _serves(self, path: str) -> bool:
        return path in (self.path, self._equal_path) or (self._sse is not None and self._sse.serves(path))

    async def _answer_preflight(self, scope: Scope, origin: bytes, send: Send) -> None:
        """Answer which headers and methods a page may send. The token comes with the actual request."""
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        try:
            self.checks.check_source(headers)
            await send_empty(send, 204, [*_named(origin), _METHODS, *_allowed_names(headers), _MAX_AGE])
        except HttpRefusal as refusal:
            await send_refusal(send, refusal)


def _origin_of(scope: Scope) -> bytes | None:
    """Return the origin of a request; None if it names none, or several."""
    if scope["type"] != "http":
        return None
    named: list[bytes] = [value for name, value in scope["headers"] if name == b"origin"]
    return named[0] if len(named) == 1 else None


def _naming(origin: bytes, send: Send) -> Send:
    """Let the page read the response, unless the response itself names who may read it."""

    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start" and all(name != _ALLOW_ORIGIN for name, _ in message["headers"]):
            message["headers"] = [*message["headers"], *_named(origin), _EXPOSED]
        await send(message)

    return send_named


def _named(origin: bytes) -> Headers:
    return [(_ALLOW_ORIGIN, origin), (b"vary", b"Origin")]


def _allowed_names(headers: Mapping[bytes, bytes]) -> Headers:
    """Allow the requested headers that belong to the protocol, among them those that tools define."""
    wanted = (name.strip().lower() for name in headers.get(b"access-control-request-headers", b"").split(b","))
    allowed = [name for name in wanted if name in _KNOWN or _PROTOCOL_HEADER.fullmatch(name)]
    return [(b"access-control-allow-headers", b", ".join(allowed[:_MAX_NAMES]))] if allowed else []
