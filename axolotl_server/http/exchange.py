"""One POST: its surroundings for the handler, and its way back as JSON or as an event stream."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from axolotl_core.cancellation import CancelReason
from axolotl_core.errors import InvalidRequest
from axolotl_core.layer import ITask
from axolotl_core.protocol.identity import Principal
from axolotl_server.http.asgi import Receive, Send
from axolotl_server.http.checks import accepts
from axolotl_server.http.listening import until_client_leaves
from axolotl_server.http.premises import IGate
from axolotl_server.http.refusals import HttpRefusal
from axolotl_server.http.reply import Headers, send_empty, send_json
from axolotl_server.http.session import Session
from axolotl_server.http.session_stream import SessionStream
from axolotl_server.http.sessions import Sessions
from axolotl_server.http.stream import EventStream
from axolotl_server.peer import Connection, IStoppable

__all__ = ["HttpExchange", "Surroundings"]

_SESSION_HEADER = b"mcp-session-id"


class Surroundings(msgspec.Struct, frozen=True, eq=False):
    """What all exchanges of an application share."""

    sessions: Sessions
    keep_alive_seconds: float
    gate: IGate | None = None


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

    def demand(self, scopes: Iterable[str]) -> HttpRefusal | None:
        """Challenge a client whose token could be good for more, unless the reply has begun."""
        if self._surroundings.gate is None or self._outlet is not None:
            return None
        self.plain = False
        self._refusal = self._surroundings.gate.demand(scopes)
        return self._refusal

    def settle(self, reply: bytes | None, running: ITask) -> None:
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
