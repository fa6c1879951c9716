"""One POST: its surroundings for the handler, and its way back as JSON or as an event stream."""

import asyncio
from collections.abc import Mapping

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InvalidRequest
from axolotl_core.layer import ToolCall
from axolotl_core.protocol.identity import Principal
from axolotl_server.http.asgi import Receive, Send
from axolotl_server.http.checks import accepts
from axolotl_server.http.reply import Headers, send_empty, send_json
from axolotl_server.http.sessions import Session, Sessions
from axolotl_server.http.stream import EventStream
from axolotl_server.peer import Connection, IExchange, Request

__all__ = ["HttpExchange"]

_SESSION_HEADER = b"mcp-session-id"


class HttpExchange(IExchange):
    """A reply stays plain JSON unless something has to be said before it."""

    __slots__ = (
        "_begun",
        "_keep_alive_seconds",
        "_receive",
        "_send",
        "_sessions",
        "_stream",
        "_watcher",
        "headers",
        "loop",
        "principal",
        "status",
    )

    headers: Mapping[bytes, bytes]

    def __init__(
        self,
        headers: Mapping[bytes, bytes],
        principal: Principal,
        sessions: Sessions,
        receive: Receive,
        send: Send,
        keep_alive_seconds: float,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.headers = headers
        self.principal = principal
        self.status = 200
        self._sessions = sessions
        self._receive = receive
        self._send = send
        self._keep_alive_seconds = keep_alive_seconds
        self._begun: Session | None = None
        self._stream: EventStream | None = None
        self._watcher: asyncio.Task[None] | None = None

    def connection(self) -> Connection:
        """Find the session that the header names."""
        return self._sessions.find(self._header(_SESSION_HEADER), self.principal)

    def open_connection(self) -> Connection:
        """Begin a session; its id leaves with the reply."""
        if self._header(_SESSION_HEADER) is not None:
            raise InvalidRequest("Invalid request: initialize begins a session, send it without Mcp-Session-Id")
        self._begun = self._sessions.begin(self.principal)
        return self._begun

    def notify(self, message: bytes) -> None:
        """Turn the reply into an event stream, if the client takes one."""
        if self._stream is None:
            if not accepts(self._header(b"accept") or b"*/*", b"text/event-stream"):
                return
            self._stream = EventStream(self._send, self._session_header(), self._keep_alive_seconds)
        self._stream.put(message)

    def watch(self, call: ToolCall) -> None:
        """Stop the call if the client goes away, in the eras where that means it."""
        request = call.caller
        assert isinstance(request, Request)
        if request.era.cancel_on_disconnect:
            self._watcher = self.loop.create_task(self._watch(call))

    async def finish(self, reply: bytes | None) -> None:
        """Send the reply in the form that the exchange has come to."""
        if self._watcher is not None:
            self._watcher.cancel()
        if self._stream is not None:
            if reply is not None:
                self._stream.put(reply)
            self._stream.put(None)
            await self._stream.finished()
        elif reply is not None:
            await send_json(self._send, self.status, reply, self._session_header())
        else:
            await send_empty(self._send, self.status if self.status != 200 else 204)

    def _header(self, name: bytes) -> bytes | None:
        return self.headers.get(name)

    def _session_header(self) -> Headers:
        return [] if self._begun is None else [(_SESSION_HEADER, self._begun.id)]

    async def _watch(self, call: ToolCall) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        call.stop(CancelReason.DISCONNECT)
