"""The deprecated HTTP+SSE transport of the first revision: one endpoint for a stream, one for posts."""

import asyncio
import logging
import secrets
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.protocol.identity import Principal
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.asgi import LARGE_BODY_BYTES, HttpRefusal, Scope, read_body, send_empty
from axolotl_server.http.event_stream import EventStream, endpoint
from axolotl_server.http.header_checks import accepts
from axolotl_server.http.http_exchange import HttpExchange
from axolotl_server.protocol.flow_control import MAX_WAITING
from axolotl_server.settings.server import ServerSettings
from axolotl_server.transports.stream_exchange import StreamExchange

if TYPE_CHECKING:
    from axolotl_server.http.app import HttpApp

_MAX_UNREAD_BYTES: Final = 16 * 1024 * 1024
"""How many bytes may wait for a client that does not read; beyond, its stream ends."""

_log: Final = logging.getLogger("axolotl")


class _SseConnection:
    """A client with an open stream, which carries all messages to it."""

    def __init__(
        self, handler: DefaultHandler, http: HttpExchange, stream: EventStream, leaving: asyncio.Event
    ) -> None:
        self.id = secrets.token_hex(16)
        self.stream = stream
        self.exchange = StreamExchange(handler, self.put, http.principal, http.share)
        self.exchange.client_address = http.client_address
        self._handler = handler
        self.gone = False
        self._leaving = leaving

    def put(self, message: bytes) -> None:
        """Send a message, or end the stream of a client that leaves too much unread."""
        self.stream.put(message)
        if self.stream.waiting > 1 and self.stream.waiting_bytes > _MAX_UNREAD_BYTES and not self.gone:
            _log.warning("a client of HTTP+SSE does not read its messages: its stream is closed")
            self.lose()
            self.stream.abandon()

    def lose(self) -> None:
        """Stop the calls of a client that has left."""
        self.gone = True
        self._handler.disconnect(self.exchange.connection(), CancelReason.DISCONNECT)
        self._leaving.set()

    async def run(self, drain_seconds: float) -> None:
        """Serve until one side leaves. If it is the server, running calls may finish and are answered."""
        self.stream.start()
        await self._leaving.wait()
        await self.exchange.close(0 if self.gone else drain_seconds)
        if self.gone:
            self.stream.abandon()
        self.stream.end()
        await self.stream.finished()


class SseTransport:
    """Serves the two endpoints; messages are handled as on any other stream."""

    def __init__(self, app: "HttpApp", handler: DefaultHandler, settings: ServerSettings) -> None:
        self._app = app
        self._handler = handler
        self._drain_seconds = settings.http.drain_seconds
        self._path = settings.http.sse_path or "/"
        self._messages = f"{self._path.rstrip('/')}/messages"
        self._by_id: dict[str, _SseConnection] = {}

    def serves(self, path: str) -> bool:
        """Whether a path is one of the two endpoints."""
        return path in (self._path, self._messages)

    async def serve(self, scope: Scope, exchange: HttpExchange) -> None:
        """Serve a request to one of the endpoints."""
        serve, method = (self._listen, "GET") if scope["path"] == self._path else (self._post, "POST")
        if scope["method"] != method:
            raise HttpRefusal(405, f"Method not allowed: use {method}", headers=[(b"allow", method.encode())])
        await serve(scope, exchange)

    async def _listen(self, scope: Scope, http: HttpExchange) -> None:
        """Open a stream, which is the client's connection."""
        if not accepts(http.headers.get(b"accept", b"*/*"), b"text/event-stream"):
            raise HttpRefusal(406, "Not acceptable: send Accept: text/event-stream")
        stream, leaving = EventStream(http.request.send, [], self._app.keep_alive), asyncio.Event()
        with self._app.sessions.other_connection(leaving.set, http.share):
            connection = _SseConnection(self._handler, http, stream, leaving)
            self._by_id[connection.id] = connection
            stream.write(endpoint(f"{self._messages}?session={connection.id}"))
            unwatch = http.request.watch(connection.lose)
            try:
                await connection.run(self._drain_seconds)
            finally:
                unwatch()
                connection.lose()
                del self._by_id[connection.id]

    async def _post(self, scope: Scope, http: HttpExchange) -> None:
        """Receive a message; the reply is sent on the stream."""
        app, request = self._app, http.request
        app.checks.check_content(http.headers)
        connection = self._find(scope["query_string"], http.principal)
        body = await read_body(http.headers, request.receive, app.max_message_bytes, app.bodies)
        if connection.gone:  # while the body arrived
            raise _not_found()
        if connection.stream.waiting >= MAX_WAITING or connection.stream.waiting_bytes > _MAX_UNREAD_BYTES // 4:
            raise HttpRefusal(503, "Service unavailable: read the messages that wait on the stream first")
        self._receive(connection.exchange.on_behalf_of(http.principal), body)
        await send_empty(request.send, 202)

    def _receive(self, exchange: StreamExchange, body: bytes) -> None:
        """Handle a message; a large one counts until it is answered, although its post has ended."""
        if len(body) <= LARGE_BODY_BYTES:
            exchange.receive(body)
            return
        with ExitStack() as running:
            running.enter_context(self._app.running_bodies.holding(len(body), exchange.share))
            task = exchange.receive(body)
            if task is not None:
                held = running.pop_all()
                task.add_done_callback(lambda _: held.close())

    def _find(self, query: bytes, principal: Principal) -> _SseConnection:
        session_id = parse_qs(query.decode("latin-1")).get("session", [""])[0]
        connection = self._by_id.get(session_id)
        if connection is None or connection.gone or connection.exchange.principal.identity != principal.identity:
            raise _not_found()
        return connection


def _not_found() -> HttpRefusal:
    return HttpRefusal(404, "Session not found: its stream has ended, open another one")
