"""The endpoint: POST for messages, GET and DELETE for the sessions of handshake clients."""

import asyncio
from asyncio import get_running_loop
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import ConfigurationError, InvalidRequest
from axolotl_core.layers import ITask
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.sessions import IEventStore
from axolotl_server.asgi.event_stream import EventStream, until_client_leaves
from axolotl_server.asgi.http import (
    JSON,
    Headers,
    HttpRefusal,
    IAuthenticator,
    Receive,
    Routing,
    Scope,
    Send,
    read_rest,
    send_empty,
    send_json,
    send_refusal,
)
from axolotl_server.eras.era import HANDSHAKE_VERSIONS
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.header_checks import HeaderChecks, accepts
from axolotl_server.messages.connection import Connection, IStoppable
from axolotl_server.sessions.session import Session, SessionStream
from axolotl_server.sessions.sessions import Sessions, choose_sessions
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.http.sse_transport import SseTransport
    from axolotl_server.stores.redis_client import RedisClient


async def listen(session: Session, headers: Mapping[bytes, bytes], outlet: EventStream, receive: Receive) -> None:
    """Serve a stream of a session until it ends or its client leaves.

    Raises:
        HttpRefusal: if there is no such stream, or it is taken.
    """
    last_event_id = headers.get(b"last-event-id")
    stream = await (session.resume(outlet, last_event_id) if last_event_id else session.listen(outlet))
    watcher = get_running_loop().create_task(until_client_leaves(receive, outlet.abandon))
    try:
        await outlet.run()
    finally:
        watcher.cancel()
        if stream is not None:
            stream.detach(outlet)


_SESSION_HEADER = b"mcp-session-id"


class ExchangeContext(msgspec.Struct, frozen=True, eq=False):
    """What all exchanges of an application share."""

    sessions: Sessions
    keep_alive_seconds: float
    gate: IAuthenticator | None = None


class HttpExchange(msgspec.Struct, eq=False, gc=False):
    """A reply stays plain JSON unless something has to be said before it."""

    loop: asyncio.AbstractEventLoop
    headers: Mapping[bytes, bytes]
    principal: Principal
    _surroundings: ExchangeContext
    _receive: Receive
    _send: Send
    status: int = 200
    plain: bool = True
    """Whether a JSON reply is all there is to send; `finish` has to be called where it is not."""
    _session: Session | None = None
    _begins: bool = False
    _outlet: EventStream | None = None
    """The response to this very request, once it is an event stream."""
    _stream: EventStream | SessionStream | None = None
    """Where messages go: to the response, or in a session to the stream that will outlive it."""
    _watcher: asyncio.Task[None] | None = None
    _settling: asyncio.Task[None] | None = None
    _refusal: HttpRefusal | None = None
    """The challenge that a reply with its status carries."""

    def connection(self) -> Connection:
        """Find the session that the header names."""
        self._session = self._surroundings.sessions.find(self.headers.get(_SESSION_HEADER), self.principal)
        self.plain = self.plain and self._surroundings.sessions.plain_replies
        return self._session

    def open_connection(self) -> Connection:
        """Begin a session; its id leaves with the reply."""
        if self.headers.get(_SESSION_HEADER) is not None:
            raise InvalidRequest("Invalid request: initialize begins a session, send it without Mcp-Session-Id")
        self.plain = False
        self._session = self._surroundings.sessions.begin(self.principal)
        self._begins = True
        return self._session

    def notify(self, message: bytes) -> bool:
        """Turn the reply into an event stream; answers False if the client takes none."""
        stream = self._stream or self._open_stream()
        if stream is None:
            return False
        stream.put(message)
        return True

    def watch(self, running: IStoppable) -> None:
        """Stop what runs if the client goes away."""
        self.plain = False
        self._watcher = self.loop.create_task(self._watch(running))

    def hang_up(self) -> None:
        """End the response if the client will come back for the reply."""
        if self._session is not None and self._session.polls:
            stream = self._stream or self._open_stream()
            if isinstance(stream, SessionStream):
                stream.hang_up()

    def challenge(self, scopes: Iterable[str]) -> HttpRefusal | None:
        """Challenge a client whose token could be good for more, unless the reply has begun."""
        if self._surroundings.gate is None or self._outlet is not None:
            return None
        self.plain = False
        self._refusal = self._surroundings.gate.demand(scopes)
        return self._refusal

    def reply_early(self, reply: bytes | None, running: ITask) -> None:
        """Answer in a task of its own: the one that has the request is kept busy."""
        self.plain = False
        self._settling = self.loop.create_task(self._finish(reply))

    async def finish(self, reply: bytes | None) -> None:
        """End an exchange that is not answered by plain JSON and nothing else."""
        await (self._finish(reply) if self._settling is None else self._settling)

    async def _finish(self, reply: bytes | None) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        if self._session is not None and self._surroundings.sessions.shared:
            await self._share(self._session)
        if reply is not None and self._streams_reply:
            self._open_stream()
        if self._stream is not None and self._outlet is not None:
            if reply is not None:
                self._stream.put(reply)
            self._stream.end()
            await self._outlet.finished()
        elif reply is not None:
            await send_json(self._send, self.status, reply, [*self._session_header(), *self._challenge()])
        else:
            await send_empty(self._send, self.status if self.status != 200 else 204)

    async def _share(self, session: Session) -> None:
        """Let other processes know what the message did; where the reply has begun, it goes on in any case."""
        try:
            await self._surroundings.sessions.settle(session)
        except HttpRefusal:
            if self._outlet is None:
                raise

    @property
    def _streams_reply(self) -> bool:
        """Whether a reply that could be plain JSON is to be an event, so that it can be fetched again."""
        in_session = self._session is not None and not self._begins
        return in_session and self.status == 200 and self._stream is None and self._surroundings.sessions.stream_replies

    def _open_stream(self) -> EventStream | SessionStream | None:
        if not accepts(self.headers.get(b"accept", b"*/*"), b"text/event-stream"):
            return None
        self.plain = False
        outlet = EventStream(self._send, self._session_header(), self._surroundings.keep_alive_seconds)
        outlet.start()
        self._outlet = outlet
        self._stream = outlet if self._session is None else self._session.open_stream(outlet)
        return self._stream

    def _session_header(self) -> Headers:
        return [(_SESSION_HEADER, self._session.id)] if self._begins and self._session is not None else []

    def _challenge(self) -> Sequence[tuple[bytes, bytes]]:
        return () if self._refusal is None or self._refusal.status != self.status else self._refusal.headers

    async def _watch(self, running: IStoppable) -> None:
        await until_client_leaves(self._receive, lambda: running.stop(CancelReason.DISCONNECT))


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
        premises: Routing | None = None,
        *,
        redis: "RedisClient | None" = None,
    ) -> None:
        if (premises is None and settings.auth.is_used) or (redis is None and settings.redis.url is not None):
            raise ConfigurationError("This HttpApp would ignore auth or redis.url: create it with make_app(host)")
        premises = premises or Routing()
        self._gate = premises.gate
        self._routes = premises.routes
        self._handler = handler
        self._reply_at_once = reply_at_once or _by_messages
        self._checks = HeaderChecks(settings.http)
        self._max_bytes = settings.limits.max_message_bytes
        self._path = settings.http.path
        self.refused: dict[int, int] = {}
        """How many requests were refused before a method saw them, by status."""
        self.sessions = choose_sessions(handler, settings, event_store, redis)
        self._shares_sessions = self.sessions.shared
        self._surroundings = ExchangeContext(self.sessions, settings.http.keep_alive_seconds, premises.gate)
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

    async def _admit(self, gate: IAuthenticator, scope: Scope, headers: dict[bytes, bytes]) -> Principal:
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
