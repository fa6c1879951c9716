"""The exchange of one request: a JSON reply, or an event stream."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from axolotl_core.calls.cancellation import CancelReason
from axolotl_core.errors import InvalidRequest
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import ITask
from axolotl_core.protocol.identity import Principal
from axolotl_server.http.asgi import Headers, HttpRefusal, IHttpRequest, send_empty, send_json
from axolotl_server.http.event_stream import KEEP_ALIVE, EventStream
from axolotl_server.http.header_checks import accepts
from axolotl_server.protocol.connection import Connection, Stop
from axolotl_server.protocol.fair_share import Share, share_of
from axolotl_server.sessions.session import Session, SessionStream

if TYPE_CHECKING:
    from axolotl_server.http.app import HttpApp

_SESSION_HEADER = b"mcp-session-id"


class HttpExchange(msgspec.Struct, eq=False):
    """The exchange of one request whose source and caller were accepted.

    The reply to a message is plain JSON, unless messages have to be sent before it.
    """

    loop: asyncio.AbstractEventLoop
    headers: Mapping[bytes, bytes]
    principal: Principal
    _app: "HttpApp"
    request: IHttpRequest
    status: int = 200
    plain: bool = True
    """Whether a JSON reply is all there is to send; otherwise `finish` has to be called."""
    _session: Session | None = None
    _is_new_session: bool = False
    _response_stream: EventStream | None = None
    """The response to this request, once it is an event stream."""
    _message_stream: EventStream | SessionStream | None = None
    """The stream that messages are put into: the response, or in a session a stream that outlives it."""
    _unwatch: Callable[[], object] | None = None
    """Ends the watch for the disconnection of the client."""
    _early_reply: asyncio.Task[None] | None = None
    _refusal: HttpRefusal | None = None
    """A challenge or a hint when to try again, sent with the reply if that has the same status."""
    _finishing: bool = False
    silent_steps: int = 0
    subject: FeatureSpec | None = None

    @property
    def share(self) -> Share | None:
        """Whom the request counts for in limits per principal."""
        client, addresses = self.request.client, self._app.addresses
        if client is not None and not addresses.trusts_any:  # a shortcut, because each call waits for this
            return share_of(self.principal, client[0])
        return share_of(self.principal, addresses.find(client, self.headers))

    @property
    def client_address(self) -> str | None:
        """The address of the client, as far as it can be trusted."""
        return self._app.addresses.find(self.request.client, self.headers)

    def connection(self) -> Connection:
        """Find the session that the header names."""
        sessions = self._app.sessions
        self._session = session = sessions.find(self.headers.get(_SESSION_HEADER), self.principal)
        if not sessions.plain_replies:
            self.plain = False
            if sessions.stream_replies:
                self.loop.call_soon(self._prime)
        return session

    def open_connection(self) -> Connection:
        """Begin a session; the reply carries its id."""
        if self.headers.get(_SESSION_HEADER) is not None:
            raise InvalidRequest("Invalid request: initialize begins a session, send it without Mcp-Session-Id")
        self.plain = False
        self._session = self._app.sessions.begin(self.principal, self.share)
        self._is_new_session = True
        return self._session

    def notify(self, message: bytes) -> bool:
        """Send a message ahead of the reply, as an event stream; return False if the client does not accept one."""
        stream = self._message_stream or self._open_stream()
        if stream is None:
            return False
        stream.put(message)
        return True

    def watch(self, stop: Stop | None) -> None:
        """Keep the client waiting with an event stream, and stop a call when the client disconnects."""
        self.plain = False
        if self._response_stream is None:
            self._app.keep_alive.add(self)
        if stop is not None:
            self._unwatch = self.request.watch(lambda: stop(CancelReason.DISCONNECT))

    def keep_alive(self) -> None:
        """Begin an event stream, because the client has waited for an interval without getting anything."""
        self._app.keep_alive.remove(self)
        self._open_stream()
        if self._response_stream is not None and (self._session is None or not self._session.polls):
            self._response_stream.write(KEEP_ALIVE)  # other streams begin with an event

    def abort(self) -> None:
        """Write nothing more, because the request was cancelled."""
        self._app.keep_alive.remove(self)
        if self._response_stream is not None:
            self._response_stream.abandon()

    def hang_up(self) -> None:
        """End the response if the client will return for the reply."""
        if self._session is not None and self._session.polls:
            stream = self._message_stream or self._open_stream()
            if isinstance(stream, SessionStream):
                stream.hang_up()

    def end_silently(self) -> bool:
        """End the response as an event stream without a reply, unless the client would resume that stream.

        A client that has cancelled its request expects no reply, but an HTTP response. Some clients fail if they get
        JSON while they leave.
        """
        if self._message_stream is None:
            return self._open_stream(in_session=False) is not None
        return not (isinstance(self._message_stream, SessionStream) and self._message_stream.is_stored)

    def challenge(self, scopes: Iterable[str]) -> HttpRefusal | None:
        """Ask a client for a token with more scopes, unless the reply has begun."""
        if self._app.gate is None or self._response_stream is not None:
            return None
        self.plain = False
        self._refusal = self._app.gate.challenge(scopes)
        return self._refusal

    def retry_after(self, seconds: int) -> None:
        """Send the error with a Retry-After header."""
        self.plain = False
        self._refusal = HttpRefusal(self.status, "", headers=[(b"retry-after", b"%d" % seconds)])

    def reply_early(self, reply: bytes | None, running: ITask) -> None:
        """Reply in a separate task, because the task of the request is still busy."""
        self.plain = False
        self._early_reply = self.loop.create_task(self._finish(reply))

    async def finish(self, reply: bytes | None) -> None:
        """End an exchange whose reply is more than plain JSON."""
        await (self._finish(reply) if self._early_reply is None else self._early_reply)

    async def _finish(self, reply: bytes | None) -> None:
        self._finishing = True
        self._app.keep_alive.remove(self)
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None  # a cancelled task keeps its traceback, and with it this exchange
        if self._session is not None and self._app.sessions.shared:
            try:
                await self._app.sessions.publish_changes(self._session)
            except HttpRefusal:
                if self._response_stream is None:  # otherwise the reply has begun, and is continued
                    raise
        if reply is not None and self._streams_reply:
            self._open_stream()
        if self._message_stream is not None and self._response_stream is not None:
            if reply is not None:
                self._message_stream.put(reply)
            self._message_stream.end()
            await self._response_stream.finished()
        elif reply is not None:
            refusal = self._refusal
            extra = refusal.headers if refusal is not None and refusal.status == self.status else ()
            await send_json(self.request.send, self.status, reply, [*self._session_header(), *extra])
        else:
            await send_empty(self.request.send, self.status if self.status != 200 else 204)

    @property
    def _streams_reply(self) -> bool:
        """Whether a reply that could be plain JSON is sent as an event, so that it can be fetched again."""
        in_session = self._session is not None and not self._is_new_session
        return in_session and self.status == 200 and self._message_stream is None and self._app.sessions.stream_replies

    def _prime(self) -> None:
        """Let the client resume the stream of its reply from the start; notifications and errors have no stream."""
        if self._streams_reply and not self._finishing and self._session is not None and self._session.polls:
            self._open_stream()

    def _open_stream(self, *, in_session: bool = True) -> EventStream | SessionStream | None:
        if not accepts(self.headers.get(b"accept", b"*/*"), b"text/event-stream"):
            return None
        self.plain = False
        outlet = EventStream(self.request.send, self._session_header(), self._app.keep_alive)
        outlet.start()
        self._response_stream = outlet
        self._message_stream = outlet
        if self._session is not None and in_session:
            mark = self._app.sessions.mark(self.principal, self.subject)
            self._message_stream = self._session.open_stream(outlet, mark)
        return self._message_stream

    def _session_header(self) -> Headers:
        return [(_SESSION_HEADER, self._session.id)] if self._is_new_session and self._session is not None else []
