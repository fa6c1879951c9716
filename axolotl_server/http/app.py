"""The endpoint: POST for messages, GET and DELETE for the sessions of handshake clients."""

from asyncio import get_running_loop
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from axolotl_core.event_store import IEventStore
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server.eras.select import HANDSHAKE_VERSIONS
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.asgi import Receive, Scope, Send
from axolotl_server.http.body import read_rest
from axolotl_server.http.checks import HeaderChecks, accepts
from axolotl_server.http.exchange import HttpExchange, Surroundings
from axolotl_server.http.listening import listen
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.http.reply import JSON, send_empty, send_refusal
from axolotl_server.http.session import Session
from axolotl_server.http.sessions import Sessions
from axolotl_server.http.stream import EventStream
from axolotl_server.settings import ServerSettings, SessionSettings
from axolotl_server.stores.memory_events import MemoryEventStore

if TYPE_CHECKING:
    from axolotl_server.http.sse_transport import SseTransport

__all__ = ["HttpApp", "ReplyAtOnce"]

_DUPLICATED = b"\x00duplicated"
_JUDGED = frozenset({b"host", b"origin", b"last-event-id"})


ReplyAtOnce: TypeAlias = Callable[[Send, int, bytes], bool]
"""Sends a plain JSON reply in a way that only one server knows; answers False where ASGI messages have to do it."""


def _by_messages(send: Send, status: int, body: bytes) -> bool:
    return False


class HttpApp:
    """An ASGI application that runs the handler in the server's own task, without one of its own."""

    def __init__(
        self,
        handler: DefaultHandler,
        settings: ServerSettings,
        reply_at_once: ReplyAtOnce = _by_messages,
        event_store: IEventStore | None = None,
    ) -> None:
        self._handler = handler
        self._reply_at_once = reply_at_once
        self._checks = HeaderChecks(settings.http)
        self._max_bytes = settings.limits.max_message_bytes
        self._path = settings.http.path
        self.sessions = Sessions(handler, settings.sessions, _store_for(settings.sessions, event_store))
        self._surroundings = Surroundings(self.sessions, settings.http.keep_alive_seconds)
        self._sse = None if settings.http.sse_path is None else self._make_sse(handler, settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        try:
            pairs = scope["headers"]
            headers = dict(pairs)
            if len(headers) != len(pairs):
                _mark_duplicates(headers, pairs)
            if scope["method"] != "POST" or scope["path"] != self._path:
                await self._serve_other(scope, headers, receive, send)
                return
            get = headers.get
            if (get(b"host"), get(b"origin"), get(b"content-type"), get(b"accept")) not in self._checks.passed:
                self._checks.check_post(headers)
            message = await receive()
            body = message.get("body")
            if body is None or message.get("more_body") or len(body) > self._max_bytes:
                body = await read_rest(message, headers, receive, self._max_bytes)
            exchange = HttpExchange(get_running_loop(), headers, ANONYMOUS, self._surroundings, receive, send)
            reply = await self._handler.handle(body, exchange)
            if reply is None or not exchange.plain:
                await exchange.finish(reply)
                return
            if self._reply_at_once(send, exchange.status, reply):
                return
            reply_headers = [JSON, (b"content-length", b"%d" % len(reply))]
            await send({"type": "http.response.start", "status": exchange.status, "headers": reply_headers})
            await send({"type": "http.response.body", "body": reply})
        except HttpRefusal as refusal:
            await send_refusal(send, refusal)

    async def _serve_other(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        """Serve what is no posted message."""
        self._checks.check_source(headers)
        if self._sse is not None and self._sse.serves(scope["path"]):
            await self._sse.serve(scope, headers, receive, send)
            return
        if scope["path"] != self._path:
            raise HttpRefusal(404, f"Not found: the MCP endpoint is {self._path}")
        if scope["method"] == "GET":
            await self._get(headers, receive, send)
        elif scope["method"] == "DELETE":
            self.sessions.end(self._session(headers))
            await send_empty(send, 204)
        else:
            raise HttpRefusal(405, "Method not allowed: use POST", allow=b"POST, GET, DELETE")

    async def _get(self, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        """Open a stream of a session, or go on with one."""
        if not accepts(headers.get(b"accept", b""), b"text/event-stream"):
            raise HttpRefusal(406, "Not acceptable: send Accept: text/event-stream")
        session = self._session(headers)
        if not headers.get(b"last-event-id"):
            self.sessions.check_open()
        await listen(session, headers, EventStream(send, [], self._surroundings.keep_alive_seconds), receive)

    def _make_sse(self, handler: DefaultHandler, settings: ServerSettings) -> "SseTransport":
        """Load the deprecated transport for those who want it."""
        from axolotl_server.http.sse_transport import SseTransport

        return SseTransport(handler, settings, self.sessions, self._checks)

    def _session(self, headers: Mapping[bytes, bytes]) -> Session:
        if headers.get(b"mcp-protocol-version", b"") not in HANDSHAKE_VERSIONS:
            raise HttpRefusal(400, "Bad request: only the revisions with a handshake have sessions")
        return self.sessions.find(headers.get(b"mcp-session-id"), ANONYMOUS)


def _store_for(settings: SessionSettings, given: IEventStore | None) -> IEventStore | None:
    """Choose where events are kept, if they are."""
    if not settings.resumable:
        return None
    return MemoryEventStore(settings.max_events, settings.max_event_bytes) if given is None else given


def _mark_duplicates(headers: dict[bytes, bytes], pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Make sure that a header which decides something matches nothing if it was sent twice."""
    seen: set[bytes] = set()
    for name, _ in pairs:
        if name in seen and (name.startswith(b"mcp-") or name in _JUDGED):
            headers[name] = _DUPLICATED
        seen.add(name)
