"""The endpoint: POST for messages, GET and DELETE for the sessions of handshake clients."""

from collections import Counter
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.sessions import IEventStore
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.admission import Admission
from axolotl_server.http.asgi import (
    LARGE_BODY_BYTES,
    AsgiRequest,
    BodyBudget,
    HttpRefusal,
    IAuthenticator,
    IHttpRequest,
    Receive,
    RepeatedHeader,
    Route,
    RunningBodies,
    Scope,
    Send,
    read_body,
    send_empty,
    send_refusal,
)
from axolotl_server.http.client_address import ClientAddresses
from axolotl_server.http.event_stream import EventStream, KeepAlive
from axolotl_server.http.header_checks import HeaderChecks, accepts
from axolotl_server.http.http_exchange import HttpExchange
from axolotl_server.protocol.eras.era import HANDSHAKE_VERSIONS
from axolotl_server.sessions.session import Session
from axolotl_server.sessions.sessions import choose_sessions
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.transports import HttpSettings

if TYPE_CHECKING:
    from axolotl_server.http.sse_transport import SseTransport
    from axolotl_server.stores.redis_client import RedisClient


_SECURITY_HEADERS = frozenset({b"authorization", b"content-type", b"host", b"last-event-id", b"origin"})

_LISTS = frozenset({b"accept", b"forwarded", b"x-forwarded-for"})
"""Headers with a list of values, which may be sent in several lines."""


class HttpApp:
    """An ASGI application that runs the handler in the task of the request.

    A request becomes an exchange when its source and its caller were checked; nothing behind that takes a request
    without one. `post` is the only way in for messages.
    """

    def __init__(
        self,
        handler: DefaultHandler,
        settings: ServerSettings,
        event_store: IEventStore | None = None,
        *,
        gate: IAuthenticator | None = None,
        routes: Mapping[str, Route] | None = None,
        redis: "RedisClient | None" = None,
    ) -> None:
        if (gate is None and settings.auth.is_used) or (redis is None and settings.redis.url is not None):
            raise ConfigurationError("This HttpApp would ignore auth or redis.url: create it with make_app(host)")
        self.gate = gate
        """None if all callers are anonymous."""
        self._routes = routes or {}
        """By path."""
        self._handler = handler
        self.checks = HeaderChecks(settings.http, settings.auth.resource)
        self.max_message_bytes = settings.limits.max_message_bytes
        self.max_direct_bytes = min(self.max_message_bytes, LARGE_BODY_BYTES)
        """The largest body that `post` may get at once: larger ones are counted."""
        self.path = settings.http.path
        """The path of the endpoint."""
        self.bodies = BodyBudget(settings.http.max_buffer_bytes)
        self.running_bodies = RunningBodies(settings.http.max_buffer_bytes)
        self.max_connections_per_address = settings.limits.of_caller(settings.http.max_connections)
        self._admission = Admission()
        self._equal_path = _equal_path(settings.http)
        self.refused: Counter[int] = Counter()
        """The number of requests refused before a method saw them, by status."""
        self.sessions = choose_sessions(handler, settings, event_store, redis)
        self._shares_sessions = self.sessions.shared
        self.addresses = ClientAddresses(settings.http.trusted_proxies)
        self.keep_alive = KeepAlive(settings.http.keep_alive_seconds, settings.http.max_buffer_bytes)
        self._sse: SseTransport | None = None
        if settings.http.sse_path is not None:
            from axolotl_server.http import sse_transport  # deprecated, so that few servers load it

            self._sse = sse_transport.SseTransport(self, handler, settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = AsgiRequest(receive, send, scope.get("client"))
        is_message = scope["method"] == "POST" and scope["path"] == self.path
        try:
            headers = _single_values(scope["headers"])
            if not is_message:
                await self._serve_other(scope, headers, request)
        except HttpRefusal as refusal:
            await self._refuse(refusal, send)
        else:
            if is_message:
                await self.post(headers, _take_credentials(scope, headers), request)

    async def post(
        self,
        headers: Mapping[bytes, bytes],
        credentials: bytes | None,
        request: IHttpRequest,
        body: bytes | None = None,
    ) -> None:
        """Answer a message that was posted to the endpoint.

        `headers` has one value per name and does not contain `Authorization`, whose value is `credentials`. Without
        `body`, it is read when the headers and the caller are accepted.
        """
        try:
            exchange = await self._admit(headers, credentials, request)
            del credentials  # no code behind the gate needs it
            self.checks.check_media(headers)
            if body is None:
                body = await read_body(headers, request.receive, self.max_message_bytes, self.bodies)
            if len(body) <= LARGE_BODY_BYTES:
                await self._answer(exchange, body)
            else:
                with self.running_bodies.holding(len(body), exchange.share):
                    await self._answer(exchange, body)
        except HttpRefusal as refusal:
            await self._refuse(refusal, request.send)
        except Exception as error:
            await request.fail(error)
        finally:
            request.end()

    async def _admit(
        self, headers: Mapping[bytes, bytes], credentials: bytes | None, request: IHttpRequest
    ) -> HttpExchange:
        """Check where a request comes from, and then who sends it."""
        self.checks.check_source(headers)
        gate = self.gate
        principal = ANONYMOUS if gate is None else await gate.admit(credentials, request.client, headers)
        return HttpExchange(request.loop, headers, principal, self, request)

    async def _answer(self, exchange: HttpExchange, body: bytes) -> None:
        """Give a message to the handler as soon as the load allows it, and send the reply."""
        request = exchange.request
        if monotonic() > self._admission.check_at:
            await self._admission.admit(exchange.share)
            if request.disconnected:
                return
        if self._shares_sessions and b"mcp-session-id" in exchange.headers:
            await self._restore(exchange)
        try:
            reply = await self._handler.handle(body, exchange)
        except BaseException:
            exchange.abort()
            raise
        if reply is None or not exchange.plain or not request.write_reply(exchange.status, reply):
            await exchange.finish(reply)

    async def _refuse(self, refusal: HttpRefusal, send: Send) -> None:
        self.count_refusal(refusal)
        await send_refusal(send, refusal)

    def count_refusal(self, refusal: HttpRefusal) -> None:
        """Count a request that is refused before a method sees it."""
        self.refused[refusal.status] += 1

    async def _serve_other(self, scope: Scope, headers: dict[bytes, bytes], request: AsgiRequest) -> None:
        """Serve everything except posted messages."""
        path, route = scope["path"], self._routes.get(scope["path"])
        if route is None and path == self._equal_path:
            await self({**scope, "path": self.path}, request.receive, request.send)
            return
        if route is not None:
            if not route.is_open:
                self.checks.check_source(headers)
            await route.serve(scope, headers, request.receive, request.send)
            return
        exchange = await self._admit(headers, _take_credentials(scope, headers), request)
        if self._sse is not None and self._sse.serves(path):
            await self._sse.serve(scope, exchange)
        elif path != self.path:
            raise HttpRefusal(404, f"Not found: the MCP endpoint is {self.path}")
        elif scope["method"] == "GET":
            await self._get(exchange)
        elif scope["method"] == "DELETE":
            await self.sessions.delete(await self._session(exchange))
            await send_empty(request.send, 200)
        else:
            raise HttpRefusal(405, "Method not allowed: use POST", headers=[(b"allow", b"POST, GET, DELETE")])

    async def _get(self, exchange: HttpExchange) -> None:
        """Serve a new stream of a session, or a resumed one, until it ends or its client leaves."""
        if not accepts(exchange.headers.get(b"accept", b""), b"text/event-stream"):
            raise HttpRefusal(406, "Not acceptable: send Accept: text/event-stream")
        session, principal, request = await self._session(exchange), exchange.principal, exchange.request
        last_event_id = exchange.headers.get(b"last-event-id")
        if last_event_id:
            await self.sessions.check_resumption(last_event_id, principal)
        else:
            self.sessions.check_open()
        response, may_hear = EventStream(request.send, [], self.keep_alive), self.sessions.hearing(principal)
        if last_event_id:
            stream = await session.resume(response, last_event_id, may_hear)
        else:
            stream = await session.listen(response, self.sessions.mark(principal), may_hear)
        unwatch = request.watch(response.abandon)
        try:
            await response.run()
        finally:
            unwatch()
            stream.detach(response)

    async def _session(self, exchange: HttpExchange) -> Session:
        if exchange.headers.get(b"mcp-protocol-version", b"") not in HANDSHAKE_VERSIONS:
            raise HttpRefusal(400, "Bad request: only revisions with a handshake have sessions")
        await self._restore(exchange)
        return self.sessions.find(exchange.headers.get(b"mcp-session-id"), exchange.principal)

    async def _restore(self, exchange: HttpExchange) -> None:
        """Update the session of a request, if it has one, with the changes that other processes made."""
        session_id = exchange.headers.get(b"mcp-session-id")
        if session_id is not None and exchange.headers.get(b"mcp-protocol-version", b"") in HANDSHAKE_VERSIONS:
            await self.sessions.restore(session_id, exchange.principal)


def _equal_path(http: HttpSettings) -> str | None:
    """Return the path of the endpoint with a slash more or less at its end, unless something else is served there."""
    path = http.path.rstrip("/") if http.path.endswith("/") else f"{http.path}/"
    return None if path in ("", http.sse_path) else path


def _single_values(pairs: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return headers by name; refuse a request that repeats a header on which security depends."""
    headers = dict(pairs)
    if len(headers) != len(pairs):
        seen: set[bytes] = set()
        for name, _ in pairs:
            if name in seen and (name.startswith(b"mcp-") or name in _SECURITY_HEADERS):
                refusal = RepeatedHeader if name.startswith(b"mcp-") else HttpRefusal
                raise refusal(400, f"Bad request: send the header {name.decode('latin-1').title()} only once")
            seen.add(name)
        for listed in _LISTS & seen:
            headers[listed] = b", ".join(value for name, value in pairs if name == listed)
    return headers


def _take_credentials(scope: Scope, headers: dict[bytes, bytes]) -> bytes | None:
    """Remove the Authorization header from a request: no code behind the gate needs it."""
    credentials = headers.pop(b"authorization", None)
    if credentials is not None:
        pairs = scope["headers"]
        if isinstance(pairs, list):
            pairs[:] = [pair for pair in pairs if pair[0] != b"authorization"]  # in place: the server has the same list
        else:
            scope["headers"] = [pair for pair in pairs if pair[0] != b"authorization"]
    return credentials
