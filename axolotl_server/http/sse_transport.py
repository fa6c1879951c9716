"""The deprecated transport of the first revision: one endpoint for a stream, another for what the client says."""

import asyncio
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qs

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.protocol.identity import Principal
from axolotl_server.asgi.event_stream import EventStream, endpoint, until_client_leaves
from axolotl_server.asgi.http import HttpRefusal, Receive, Scope, Send, read_rest, send_empty
from axolotl_server.handler import DefaultHandler
from axolotl_server.http.header_checks import HeaderChecks, accepts
from axolotl_server.messages.flow_control import MAX_WAITING
from axolotl_server.sessions.sessions import Sessions
from axolotl_server.settings.server import ServerSettings
from axolotl_server.transports.stream_exchange import StreamExchange


class _SseConnection:
    """A client with an open stream: all that it is told goes there."""

    def __init__(
        self, handler: DefaultHandler, stream: EventStream, principal: Principal, leaving: asyncio.Event
    ) -> None:
        self.token = secrets.token_hex(16)
        self.stream = stream
        self.peer = StreamExchange(handler, stream.put, principal)
        self._handler = handler
        self._gone = False
        self._leaving = leaving

    def lose(self) -> None:
        """Stop what runs: the client has gone."""
        self._gone = True
        self._handler.disconnect(self.peer.connection(), CancelReason.DISCONNECT)
        self._leaving.set()

    async def run(self, drain_seconds: float) -> None:
        """Serve until one side leaves; where the server does, what runs may end and is answered."""
        self.stream.start()
        await self._leaving.wait()
        await self.peer.close(0 if self._gone else drain_seconds)
        self.stream.end()
        await self.stream.finished()


class SseTransport:
    """Serves the two endpoints; everything else is what a peer on a stream of messages gets anyway."""

    def __init__(
        self, handler: DefaultHandler, settings: ServerSettings, sessions: Sessions, checks: HeaderChecks
    ) -> None:
        self._handler = handler
        self._http = settings.http
        self._max_bytes = settings.limits.max_message_bytes
        self._sessions = sessions
        self._checks = checks
        self._path = settings.http.sse_path or "/"
        self._messages = f"{self._path.rstrip('/')}/messages"
        self._by_token: dict[str, _SseConnection] = {}

    def serves(self, path: str) -> bool:
        """Tell whether a path is one of the two."""
        return path in (self._path, self._messages)

    async def serve(
        self, scope: Scope, headers: Mapping[bytes, bytes], principal: Principal, receive: Receive, send: Send
    ) -> None:
        """Serve a request whose source was checked.

        Raises:
            HttpRefusal: if it is none of those that the transport has.
        """
        if scope["path"] == self._path:
            if scope["method"] != "GET":
                raise HttpRefusal(405, "Method not allowed: use GET", headers=[(b"allow", b"GET")])
            await self._listen(headers, principal, receive, send)
        else:
            if scope["method"] != "POST":
                raise HttpRefusal(405, "Method not allowed: use POST", headers=[(b"allow", b"POST")])
            await self._post(scope, headers, principal, receive, send)

    async def _listen(self, headers: Mapping[bytes, bytes], principal: Principal, receive: Receive, send: Send) -> None:
        """Open a stream, which is the client's connection."""
        if not accepts(headers.get(b"accept", b"*/*"), b"text/event-stream"):
            raise HttpRefusal(406, "Not acceptable: send Accept: text/event-stream")
        stream, leaving = EventStream(send, [], self._http.keep_alive_seconds), asyncio.Event()
        with self._sessions.guest(leaving.set):
            connection = _SseConnection(self._handler, stream, principal, leaving)
            self._by_token[connection.token] = connection
            stream.write(endpoint(f"{self._messages}?session={connection.token}"))
            watcher = asyncio.get_running_loop().create_task(until_client_leaves(receive, connection.lose))
            try:
                await connection.run(self._http.drain_seconds)
            finally:
                watcher.cancel()
                connection.lose()
                del self._by_token[connection.token]

    async def _post(
        self, scope: Scope, headers: Mapping[bytes, bytes], principal: Principal, receive: Receive, send: Send
    ) -> None:
        """Take a message; what there is to answer goes to the stream."""
        self._checks.check_content(headers)
        connection = self._find(scope["query_string"], principal)
        body = await read_rest(await receive(), headers, receive, self._max_bytes)
        if connection.stream.waiting >= MAX_WAITING:
            raise HttpRefusal(503, "Service unavailable: read what waits on the stream first")
        connection.peer.receive(body)
        await send_empty(send, 202)

    def _find(self, query: bytes, principal: Principal) -> _SseConnection:
        token = parse_qs(query.decode("latin-1")).get("session", [""])[0]
        connection = self._by_token.get(token)
        if connection is None or connection.peer.principal.identity != principal.identity:
            raise HttpRefusal(404, "Session not found: its stream has ended, open another one")
        connection.peer.principal = principal  # the latest token counts
        return connection
