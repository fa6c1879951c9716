"""One POST: its surroundings for the handler, and its way back as JSON or as an event stream."""

import asyncio
from collections.abc import Mapping

import msgspec

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InvalidRequest
from axolotl_core.layer import ToolCall
from axolotl_core.protocol.identity import Principal
from axolotl_server.http.asgi import Receive, Send
from axolotl_server.http.checks import accepts
from axolotl_server.http.reply import Headers, send_empty, send_json
from axolotl_server.http.sessions import Session, Sessions
from axolotl_server.http.stream import EventStream
from axolotl_server.peer import Connection, Request

__all__ = ["HttpExchange", "Surroundings"]

_SESSION_HEADER = b"mcp-session-id"


class Surroundings(msgspec.Struct, frozen=True, eq=False):
    """What all exchanges of an application share."""

    sessions: Sessions
    keep_alive_seconds: float


class HttpExchange(msgspec.Struct, eq=False, gc=False):
    """A reply stays plain JSON unless something has to be said before it."""

    loop: asyncio.AbstractEventLoop
    headers: Mapping[bytes, bytes]
    principal: Principal
    _surroundings: Surroundings
    _receive: Receive
    _send: Send
    status: int = 200
    plain: bool = True
    """Whether a JSON reply is all there is to send; `finish` has to be called where it is not."""
    _begun: Session | None = None
    _stream: EventStream | None = None
    _watcher: asyncio.Task[None] | None = None

    def connection(self) -> Connection:
        """Find the session that the header names."""
        return self._surroundings.sessions.find(self.headers.get(_SESSION_HEADER), self.principal)

    def open_connection(self) -> Connection:
        """Begin a session; its id leaves with the reply."""
        if self.headers.get(_SESSION_HEADER) is not None:
            raise InvalidRequest("Invalid request: initialize begins a session, send it without Mcp-Session-Id")
        self.plain = False
        self._begun = self._surroundings.sessions.begin(self.principal)
        return self._begun

    def notify(self, message: bytes) -> None:
        """Turn the reply into an event stream, if the client takes one."""
        if self._stream is None:
            if not accepts(self.headers.get(b"accept", b"*/*"), b"text/event-stream"):
                return
            self.plain = False
            self._stream = EventStream(self._send, self._session_header(), self._surroundings.keep_alive_seconds)
        self._stream.put(message)

    def watch(self, call: ToolCall) -> None:
        """Stop the call if the client goes away, in the eras where that means it."""
        request = call.caller
        assert isinstance(request, Request)
        if request.era.cancel_on_disconnect:
            self.plain = False
            self._watcher = self.loop.create_task(self._watch(call))

    async def finish(self, reply: bytes | None) -> None:
        """End an exchange that is not answered by plain JSON and nothing else."""
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

    def _session_header(self) -> Headers:
        return [] if self._begun is None else [(_SESSION_HEADER, self._begun.id)]

    async def _watch(self, call: ToolCall) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        call.stop(CancelReason.DISCONNECT)
