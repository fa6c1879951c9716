"""The endpoint: POST for messages, GET and DELETE for the sessions of handshake clients."""

from asyncio import get_running_loop
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from axolotl_core.errors import ConfigurationError
from axolotl_core.event_store import IEventStore
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_server.eras.select import HANDSHAKE_VERSIONS
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.asgi import Receive, Scope, Send
from axolotl_server.http.body import read_rest
from axolotl_server.http.checks import HeaderChecks, accepts
from axolotl_server.http.exchange import HttpExchange, Surroundings
from axolotl_server.http.listening import listen
from axolotl_server.http.premises import IGate, Premises
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.http.reply import JSON, send_empty, send_refusal
from axolotl_server.http.session import Session
from axolotl_server.http.session_choice import choose_sessions
from axolotl_server.http.stream import EventStream
from axolotl_server.settings import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.http.sse_transport import SseTransport

__all__ = ["HttpApp", "ReplyAtOnce"]

_DUPLICATED = b"\x00duplicated"
_JUDGED = frozenset({b"authorization", b"host", b"origin", b"last-event-id"})


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
        reply_at_once: ReplyAtOnce | None = None,
        event_store: IEventStore | None = None,
        premises: Premises | None = None,
    ) -> None:
        if premises is None and settings.auth.is_used:
            raise ConfigurationError("An HttpApp of its own asks nobody for a token: make it with make_app(host)")
        premises = premises or Premises()
        self._gate = premises.gate
        self._routes = premises.routes
        self._handler = handler
        self._reply_at_once = reply_at_once or _by_messages
        self._checks = HeaderChecks(settings.http)
        self._max_bytes = settings.limits.max_message_bytes
        self._path = settings.http.path
        self.refused: dict[int, int] = {}
        """How many requests were refused before a method saw them, by status."""
        self.sessions = choose_sessions(handler, settings, event_store)
        self._shares_sessions = self.sessions.shared
        self._surroundings = Surroundings(self.sessions, settings.http.keep_alive_seconds, premises.gate)
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
            principal = ANONYMOUS if self._gate is None else await self._admit(self._gate, scope, headers)
            message = await receive()
            body = message.get("body")
            if body is None or message.get("more_body") or len(body) > self._max_bytes:
                body = await read_rest(message, headers, receive, self._max_bytes)
            if self._shares_sessions and b"mcp-session-id" in headers:
                await self._restore(headers, principal)
            exchange = HttpExchange(get_running_loop(), headers, principal, self._surroundings, receive, send)
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
            status = refusal.status or 400
            self.refused[status] = self.refused.get(status, 0) + 1
            await send_refusal(send, refusal)

    async def _admit(self, gate: IGate, scope: Scope, headers: dict[bytes, bytes]) -> Principal:
        """Find out who sends a request, and take away what proves it: nobody behind the gate needs to have it."""
        principal = await gate.admit(headers)
        proof, pairs = (b"authorization", headers.pop(b"authorization", b"")), scope["headers"]
        if isinstance(pairs, list) and proof in pairs:
            pairs.remove(proof)  # in place, as the server holds the same list
        else:
            scope["headers"] = [pair for pair in pairs if pair[0] != b"authorization"]
        return principal

    def spell_out_replies(self) -> None:
        """Send every reply by messages from now on, so that the server can say more along with it."""
        self._reply_at_once = _by_messages

    async def _serve_other(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        """Serve what is no posted message."""
        route = self._routes.get(scope["path"])
        if route is None or not route.is_open:
            self._checks.check_source(headers)
        if route is not None:
            await route.serve(scope, headers, receive, send)
            return
        principal = ANONYMOUS if self._gate is None else await self._admit(self._gate, scope, headers)
        if self._sse is not None and self._sse.serves(scope["path"]):
            await self._sse.serve(scope, headers, principal, receive, send)
            return
        if scope["path"] != self._path:
            raise HttpRefusal(404, f"Not found: the MCP endpoint is {self._path}")
        if scope["method"] == "GET":
            await self._get(headers, principal, receive, send)
        elif scope["method"] == "DELETE":
            await self.sessions.finish(await self._session(headers, principal))
            await send_empty(send, 204)
        else:
            raise HttpRefusal(405, "Method not allowed: use POST", headers=[(b"allow", b"POST, GET, DELETE")])

    async def _get(self, headers: Mapping[bytes, bytes], principal: Principal, receive: Receive, send: Send) -> None:
        """Open a stream of a session, or go on with one."""
        if not accepts(headers.get(b"accept", b""), b"text/event-stream"):
            raise HttpRefusal(406, "Not acceptable: send Accept: text/event-stream")
        session = await self._session(headers, principal)
        if not headers.get(b"last-event-id"):
            self.sessions.check_open()
        await listen(session, headers, EventStream(send, [], self._surroundings.keep_alive_seconds), receive)

    def _make_sse(self, handler: DefaultHandler, settings: ServerSettings) -> "SseTransport":
        """Load the deprecated transport for those who want it."""
        from axolotl_server.http.sse_transport import SseTransport

        return SseTransport(handler, settings, self.sessions, self._checks)

    async def _session(self, headers: Mapping[bytes, bytes], principal: Principal) -> Session:
        if headers.get(b"mcp-protocol-version", b"") not in HANDSHAKE_VERSIONS:
            raise HttpRefusal(400, "Bad request: only the revisions with a handshake have sessions")
        await self._restore(headers, principal)
        return self.sessions.find(headers.get(b"mcp-session-id"), principal)

    async def _restore(self, headers: Mapping[bytes, bytes], principal: Principal) -> None:
        """Learn what other processes did to the session of a request, if it has one and they may have."""
        session_id = headers.get(b"mcp-session-id")
        if session_id is not None and headers.get(b"mcp-protocol-version", b"") in HANDSHAKE_VERSIONS:
            await self.sessions.restore(session_id, principal)


def _mark_duplicates(headers: dict[bytes, bytes], pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Make sure that a header which decides something matches nothing if it was sent twice."""
    seen: set[bytes] = set()
    for name, _ in pairs:
        if name in seen and (name.startswith(b"mcp-") or name in _JUDGED):
            headers[name] = _DUPLICATED
        seen.add(name)
