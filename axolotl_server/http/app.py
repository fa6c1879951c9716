"""The endpoint: POST for messages, GET and DELETE for the sessions of handshake clients."""

from asyncio import get_running_loop
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from axolotl_core.errors import ConfigurationError
from axolotl_core.protocol.identity import ANONYMOUS, Principal
from axolotl_core.sessions import IEventStore
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.admission import Admission
from axolotl_server.http.asgi import (
    LARGE_BODY_BYTES,
    AsgiRequest,
    BodyBudget,
    HttpRefusal,
    IPostedRequest,
    Receive,
    RepeatedHeader,
    Routing,
    RunningBodies,
    Scope,
    Send,
    read_body,
    send_empty,
    send_json,
    send_refusal,
    until_client_leaves,
)
from axolotl_server.http.client_address import ClientAddresses
from axolotl_server.http.event_stream import EventStream, KeepAlive
from axolotl_server.http.header_checks import HeaderChecks, accepts
from axolotl_server.http.http_exchange import ExchangeContext, HttpExchange
from axolotl_server.protocol.connection import MayHear
from axolotl_server.protocol.eras.era import HANDSHAKE_VERSIONS
from axolotl_server.protocol.fair_share import share_of
from axolotl_server.sessions.session import Session
from axolotl_server.sessions.sessions import choose_sessions
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.transports import HttpSettings

if TYPE_CHECKING:
    from axolotl_server.http.sse_transport import SseTransport
    from axolotl_server.stores.redis_client import RedisClient


async def listen(
    session: Session,
    last_event_id: bytes | None,
    mark: str,
    response: EventStream,
    receive: Receive,
    *,
    may_hear: MayHear | None,
) -> None:
    """Serve a stream of a session until it ends or its client leaves; refuse one that does not exist or is taken."""
    stream = await (
        session.resume(response, last_event_id, may_hear) if last_event_id else session.listen(response, mark, may_hear)
    )
    watcher = get_running_loop().create_task(until_client_leaves(receive, response.abandon))
    try:
        await response.run()
    finally:
        watcher.cancel()
        stream.detach(response)


_SECURITY_HEADERS = frozenset({b"authorization", b"content-type", b"host", b"last-event-id", b"origin"})

_LISTS = frozenset({b"accept", b"forwarded", b"x-forwarded-for"})
"""Headers with a list of values, which may be sent in several lines."""


class HttpApp:
    """An ASGI application that runs the handler in the task of the request."""

    def __init__(
        self,
        handler: DefaultHandler,
        settings: ServerSettings,
        event_store: IEventStore | None = None,
        routing: Routing | None = None,
        *,
        redis: "RedisClient | None" = None,
    ) -> None:
        if (routing is None and settings.auth.is_used) or (redis is None and settings.redis.url is not None):
            raise ConfigurationError("This HttpApp would ignore auth or redis.url: create it with make_app(host)")
        routing = routing or Routing()
        self._gate = routing.gate
        self._routes = routing.routes
        self._handler = handler
        self._checks = HeaderChecks(settings.http, settings.auth.resource)
        self.max_message_bytes = settings.limits.max_message_bytes
        self.max_direct_bytes = min(self.max_message_bytes, LARGE_BODY_BYTES)
        """The largest body that `answer_post` may get directly: larger ones are counted."""
        self.path = settings.http.path
        """The path of the endpoint."""
        self.bodies = BodyBudget(settings.http.max_buffer_bytes)
        self.running_bodies = RunningBodies(settings.http.max_buffer_bytes)
        self.max_connections_per_address = settings.limits.of_caller(settings.http.max_connections)
        self._admission = Admission()
        self._equal_path = _equal_path(settings.http)
        self.refused: dict[int, int] = {}
        """The number of requests refused before a method saw them, by status."""
        self.sessions = choose_sessions(handler, settings, event_store, redis)
        self._shares_sessions = self.sessions.shared
        self.addresses = ClientAddresses(settings.http.trusted_proxies)
        keep_alive = KeepAlive(settings.http.keep_alive_seconds, settings.http.max_buffer_bytes)
        self._context = ExchangeContext(self.sessions, keep_alive, self.addresses, routing.gate)
        self._sse = None if settings.http.sse_path is None else self._make_sse(handler, settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        try:
            headers = _single_values(scope["headers"])
            if scope["method"] != "POST" or scope["path"] != self.path:
                await self._serve_other(scope, headers, receive, send)
                return
            credentials = _take_credentials(scope, headers)
            accepted = self._checks.check_source(headers)
            client = scope.get("client")
            principal = ANONYMOUS if self._gate is None else await self._gate.admit(credentials, client, headers)
            if not accepted:
                self._checks.check_media(headers)
            body = await read_body(headers, receive, self.max_message_bytes, self.bodies)
            request = AsgiRequest(receive, send, client)
            if len(body) <= LARGE_BODY_BYTES:
                await self.answer_post(headers, None, body, request, principal)
                return
            share = share_of(principal, self.addresses.find(client, headers))
            with self.running_bodies.holding(len(body), share):
                await self.answer_post(headers, None, body, request, principal)
        except HttpRefusal as refusal:
            self.count_refusal(refusal)
            await send_refusal(send, refusal)

    async def answer_post(
        self,
        headers: Mapping[bytes, bytes],
        credentials: bytes | None,
        body: bytes,
        request: IPostedRequest,
        principal: Principal | None = None,
    ) -> None:
        """Answer a complete message that was posted to the endpoint.

        `headers` has one value per name and does not contain `Authorization`, whose value is `credentials`. With a
        principal, both were checked before the body was read.
        """
        try:
            if principal is None:
                accepted = self._checks.check_source(headers)
                gate = self._gate
                principal = ANONYMOUS if gate is None else await gate.admit(credentials, request.client, headers)
                if not accepted:
                    self._checks.check_media(headers)
                del credentials  # no code behind the gate needs it
            if monotonic() > self._admission.check_at:
                await self._admission.admit(share_of(principal, self.addresses.find(request.client, headers)))
                if request.disconnected:
                    return
            if self._shares_sessions and b"mcp-session-id" in headers:
                await self._restore(headers, principal)
            exchange = HttpExchange(request.loop, headers, principal, self._context, request)
            try:
                reply = await self._handler.handle(body, exchange)
            except BaseException:
                exchange.abort()
                raise
            if reply is None or not exchange.plain:
                await exchange.finish(reply)
            elif not request.write_reply(exchange.status, reply):
                await send_json(request.send, exchange.status, reply, [])
        except HttpRefusal as refusal:
            self.count_refusal(refusal)
            await send_refusal(request.send, refusal)
        except Exception as error:
            await request.fail(error)
        finally:
            request.end()

    def count_refusal(self, refusal: HttpRefusal) -> None:
        """Count a request that is refused before a method sees it."""
        status = refusal.status or 400
        self.refused[status] = self.refused.get(status, 0) + 1

    async def _serve_other(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        """Serve everything except posted messages."""
        route = self._routes.get(scope["path"])
        if route is None and scope["path"] == self._equal_path:
            await self({**scope, "path": self.path}, receive, send)
            return
        if route is None or not route.is_open:
            self._checks.check_host_and_origin(headers)
        if route is not None:
            await route.serve(scope, headers, receive, send)
            return
        credentials = _take_credentials(scope, headers)
        client = scope.get("client")
        principal = ANONYMOUS if self._gate is None else await self._gate.admit(credentials, client, headers)
        if self._sse is not None and self._sse.serves(scope["path"]):
            await self._sse.serve(scope, headers, principal, receive, send)
            return
        if scope["path"] != self.path:
            raise HttpRefusal(404, f"Not found: the MCP endpoint is {self.path}")
        if scope["method"] == "GET":
            await self._get(headers, principal, receive, send)
        elif scope["method"] == "DELETE":
            await self.sessions.delete(await self._session(headers, principal))
            await send_empty(send, 200)
        else:
            raise HttpRefusal(405, "Method not allowed: use POST", headers=[(b"allow", b"POST, GET, DELETE")])

    async def _get(self, headers: Mapping[bytes, bytes], principal: Principal, receive: Receive, send: Send) -> None:
        """Open a stream of a session, or resume one."""
        if not accepts(headers.get(b"accept", b""), b"text/event-stream"):
            raise HttpRefusal(406, "Not acceptable: send Accept: text/event-stream")
        session = await self._session(headers, principal)
        last_event_id = headers.get(b"last-event-id")
        if last_event_id:
            await self.sessions.check_resumption(last_event_id, principal)
        else:
            self.sessions.check_open()
        response = EventStream(send, [], self._context.keep_alive)
        mark, may_hear = self.sessions.mark(principal), self.sessions.hearing(principal)
        await listen(session, last_event_id, mark, response, receive, may_hear=may_hear)

    def _make_sse(self, handler: DefaultHandler, settings: ServerSettings) -> "SseTransport":
        """Load the deprecated transport, which few servers enable."""
        from axolotl_server.http.sse_transport import SseTransport

        keep_alive = self._context.keep_alive
        return SseTransport(
            handler,
            settings,
            self.sessions,
            self._checks,
            bodies=self.bodies,
            running_bodies=self.running_bodies,
            keep_alive=keep_alive,
            addresses=self.addresses,
        )

    async def _session(self, headers: Mapping[bytes, bytes], principal: Principal) -> Session:
        if headers.get(b"mcp-protocol-version", b"") not in HANDSHAKE_VERSIONS:
            raise HttpRefusal(400, "Bad request: only revisions with a handshake have sessions")
        await self._restore(headers, principal)
        return self.sessions.find(headers.get(b"mcp-session-id"), principal)

    async def _restore(self, headers: Mapping[bytes, bytes], principal: Principal) -> None:
        """Update the session of a request, if it has one, with the changes that other processes made."""
        session_id = headers.get(b"mcp-session-id")
        if session_id is not None and headers.get(b"mcp-protocol-version", b"") in HANDSHAKE_VERSIONS:
            await self.sessions.restore(session_id, principal)


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
