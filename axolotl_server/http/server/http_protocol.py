"""The HTTP protocol of a connection: strict, bounded parsing, and a direct path for posted messages."""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from axolotl_core.protocol.wire import error_message
from axolotl_server.http.asgi import HttpRefusal
from axolotl_server.http.server.connection_limits import CLOSE, MAX_HEAD_BYTES, MAX_HEADERS, ConnectionState
from axolotl_server.http.server.http_requests import (
    HttpRequest,
    RequestTransport,
    check_framing,
    check_target,
    make_scope,
    plain_head,
)
from axolotl_server.protocol.connection import start_task
from axolotl_server.protocol.fair_share import Share

_Pairs: TypeAlias = list[tuple[bytes, bytes]]

_IGNORED: Final[Any] = deque[tuple[bytes, bytes]](maxlen=0)
"""Takes the trailers of a body, which must not become headers."""
_NOT_DIRECT: Final = frozenset({b"expect", b"origin", b"transfer-encoding", b"upgrade"})
_MAX_PIPELINED: Final = 8
"""How many requests are read ahead while another one is answered."""
_MAX_PIPELINED_AT_ONCE: Final = 100
"""How many requests one piece of data may add to those: each takes far more memory than its bytes."""
_MAX_DISCARDED_BYTES: Final = 16 * 1024 * 1024
_DISCARD_SECONDS: Final = 2.0
"""How much a client may send after the reply that refuses its request, so that it reads this reply."""


class HttpProtocol(HttpToolsProtocol):
    """A connection. What a client may send is limited in size and time; wrong requests are refused, not repaired.

    A message that is posted to the endpoint is answered directly. Every other request passes through ASGI. Between the
    two, only the speed differs.
    """

    server_state: ConnectionState
    cycle: Any
    """The latest request; None before the first one."""
    request_transport: Any = None
    part: Literal["head", "body"] | None = None
    """The part of a request that is being received."""
    is_discarding = False
    """Whether input is only read so that the client gets to see the reply."""
    drained = 0
    """How often a full write buffer has become empty enough."""
    _answered: Any = None
    """The request that is answered while others wait for it in the pipeline."""
    _share: Share | None = None
    """Whom the connection counts for in the limit per address."""
    _head_bytes = 0
    """How many bytes were received since the last head that was not too large."""
    _bytes_without_body = 0
    _is_chunked = False
    _posted: dict[bytes, bytes] | None = None
    """The headers of a message that is answered directly, until that begins."""
    _piece = b""
    """The latest data, if a request begins with it."""
    on_leave: Callable[[], object] | None = None
    """Called when the client leaves while a message that is answered directly is slow."""
    _upgrade = b""
    """The head of a request to upgrade, without `Upgrade`: the parser would treat the body as the next request."""
    _waiting_bytes = 0
    """The size of the bodies in the pipeline, which count as incomplete ones: no request reads them yet."""
    _discarded = 0
    refusal: HttpRefusal | None = None
    """The answer to the last request of the connection, which follows that to the request before."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.request_transport = RequestTransport(self)
        self._share = self.server_state.share_of(None if self.client is None else self.client[0])
        refusal = self.server_state.enter(self._share)
        if refusal is not None:
            self.refuse(refusal)
        if self.server_state.is_flooded:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)  # which looks at the latest request only
        for cycle in (self._answered, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        on_leave, self.on_leave = self.on_leave, None
        if on_leave is not None:
            on_leave()
        self.server_state.leave(self._share)
        self._release(self._waiting_bytes)

    def data_received(self, data: bytes) -> None:
        """Answer a request with a known head at once, and parse everything else."""
        if self.is_discarding or self.refusal is not None:
            self._discard(len(data))
            return
        cycle, state = self.cycle, self.server_state
        if self.part is None and (cycle is None or cycle.response_complete) and state.answers_directly:
            found = state.known_heads.find(data)
            if found is not None:
                self._answer_directly(HttpRequest(self, self.loop, self.client), *found)
                return
        self._parse(data)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.drained += 1

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        cycle = self.cycle
        return cycle is None or bool(cycle.response_complete)

    @property
    def has_unread_body(self) -> bool:
        """Whether the latest request is incomplete and not yet answered."""
        return self.part == "body" and self.cycle is not None and not self.cycle.response_started

    def refuse(self, refusal: HttpRefusal) -> None:
        """Answer a request that cannot be read, after those before it, and close the connection."""
        if self.part == "body" and not self.is_idle and not self.pipeline:
            if self.cycle.response_started:
                self.transport.close()
                return
            self._write_refusal(refusal)
            self.cycle.disconnected = True  # the application finds that the client has left, and counts that
            self.cycle.message_event.set()
            return
        self.server_state.app.count_refusal(refusal)
        if self.is_idle:
            self._write_refusal(refusal)
            return
        if self.part == "body":
            self.pipeline.popleft()  # the request itself, which waits for those before it
        self.refusal = refusal  # what follows it is read and discarded, so that the end of the connection is seen

    def _write_refusal(self, refusal: HttpRefusal) -> None:
        state, body = self.server_state, error_message(None, refusal, refusal.code)
        headers = [*refusal.headers]
        if not state.closes_after_replies and CLOSE not in headers:
            headers.append(CLOSE)
        lines = b"".join(b"%b: %b\r\n" % pair for pair in headers)
        start = state.make_head(refusal.status, len(body)).removesuffix(b"\r\n")
        self.transport.write(b"%b%b\r\n%b" % (start, lines, body))
        self._close_slowly()

    def close(self) -> None:
        """Close the connection after the reply that was written."""
        if self.part is None:
            self.transport.close()
        else:
            self._close_slowly()

    def reset(self) -> None:
        """Close the connection and drop everything that is not sent, here and in the operating system."""
        opened = self.transport.get_extra_info("socket")
        if opened is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _close_slowly(self) -> None:
        """Read what the client still sends for a moment: a closed socket would reset it before it reads the reply."""
        if self.is_discarding or self.transport.is_closing():
            return
        self.is_discarding = True
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_DISCARD_SECONDS, self.transport.close)

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > _MAX_DISCARDED_BYTES:
            self.transport.close()

    def _parse(self, data: bytes) -> None:
        self._head_bytes += len(data)
        self._bytes_without_body += len(data)
        self._piece = data if self.part is None else b""
        try:
            while data:
                data = self._feed(data)
            self._check_progress()
        except httptools.HttpParserError as error:
            refusal = error.__context__
            if not isinstance(refusal, HttpRefusal):
                refusal = HttpRefusal(400, "Bad request: this is not valid HTTP/1.1")
            self.refuse(refusal)
        except HttpRefusal as refusal:
            self.refuse(refusal)
        finally:
            self._piece = b""

    def _feed(self, data: bytes) -> bytes:
        """Give data to the parser; return a request to upgrade as any other request, with all that follows its head."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._piece, head, self._upgrade = b"", self._upgrade, b""
            return head + data[upgrade.args[0] :]
        return b""

    def _check_progress(self) -> None:
        """Look at what is still incomplete after a piece of data."""
        if self.part == "head":
            self._check_head(self._head_bytes, self.headers)
            return
        self._head_bytes = 0
        if self._posted is not None:
            self._begin_posted(self._posted)  # which reads the rest of its body
        elif self._is_chunked and self.part and self._bytes_without_body > MAX_HEAD_BYTES:
            raise HttpRefusal(431, "Request header fields too large: the trailers of the body are too large")

    # Callbacks of the parser. An exception reaches `_parse` as the context of an HttpParserError.

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []
        self.part = "head"

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        headers, self.headers = self.headers, _IGNORED
        if self._head_bytes > MAX_HEAD_BYTES or len(headers) > MAX_HEADERS:
            self._check_head(len(self.url) + sum(len(name) + len(value) + 4 for name, value in headers), headers)
        named = dict(headers)
        if self.parser.should_upgrade():
            version = self.parser.get_http_version()
            self._upgrade = plain_head(self.parser.get_method(), self.url, version, headers)
            return
        if len(named) == len(headers) and self._is_direct(named):
            self._posted, self._is_chunked = named, False
            self.cycle = HttpRequest(self, self.loop, self.client, body=bytearray(), more_body=True)
        else:
            self._start_asgi(headers)
        self.part = "body"

    def on_body(self, body: bytes) -> None:
        self._bytes_without_body = 0
        if self.cycle.response_complete:
            self._discard(len(body))
            return
        if self.pipeline and self.pipeline[0][0] is self.cycle:
            self.server_state.app.bodies.take(len(body))
            self._waiting_bytes += len(body)
        self.cycle.body += body
        if len(self.cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        self.cycle.wake()

    def on_message_complete(self) -> None:
        self.part = None
        if self._upgrade or self.cycle.response_complete:
            return
        self.cycle.more_body = False
        self.cycle.wake()
        if self._posted is not None:
            self._begin_posted(self._posted)

    def on_response_complete(self) -> None:
        """Continue with the next request; idle connections are closed by a regular check, not by a timer."""
        if self.pipeline or self.flow.read_paused or self.refusal is not None:
            if self.transport.is_closing():
                return
            self.flow.resume_reading()
            if self.pipeline:
                self._answered, app = self.pipeline.pop()
                self._release(len(self._answered.body))
                self._start_asgi_task(self._answered, app)
            elif self.refusal is not None:
                self._write_refusal(self.refusal)

    def _release(self, size: int) -> None:
        self._waiting_bytes -= size
        self.server_state.app.bodies.give_back(size)

    def _check_head(self, size: int, headers: _Pairs) -> None:
        if size > MAX_HEAD_BYTES or len(headers) > MAX_HEADERS:
            limits = f"{MAX_HEADERS} headers and {MAX_HEAD_BYTES} bytes"
            raise HttpRefusal(431, f"Request header fields too large: send at most {limits}")

    def _is_direct(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a request can be answered directly."""
        parser, state = self.parser, self.server_state
        return (
            self.url == state.path
            and self.is_idle
            and state.answers_directly
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and _NOT_DIRECT.isdisjoint(headers)
        )

    def _begin_posted(self, headers: dict[bytes, bytes]) -> None:
        """Answer the latest message, and remember its head, if it has arrived completely and is not large."""
        self._posted = None
        request, credentials, body = self.cycle, headers.pop(b"authorization", None), None
        if not request.more_body and len(request.body) <= self.server_state.app.max_direct_bytes:
            body, request.body = bytes(request.body), b""
            if self._piece.endswith(body):
                head = self._piece[: len(self._piece) - len(body)]
                self.server_state.known_heads.add(head, headers, credentials, len(body))
        self._answer_directly(request, headers, credentials, body)

    def _answer_directly(
        self, request: HttpRequest, headers: Mapping[bytes, bytes], credentials: bytes | None, body: bytes | None
    ) -> None:
        self.cycle, state = request, self.server_state
        task = start_task(state.app.post(headers, credentials, request, body), self.loop)
        if not task.done():
            request.task = task
            state.tasks.add(task)

    def _start_asgi(self, headers: _Pairs) -> None:
        """Start a request that passes through ASGI, after the one that is being answered."""
        version, method = self.parser.get_http_version(), self.parser.get_method().decode("ascii")
        self._is_chunked = check_framing(headers, version)
        check_target(self.url, headers)
        self.scope = make_scope(self, version, method, headers)  # type: ignore[assignment]
        before = None if self.is_idle else self.cycle
        if len(self.pipeline) >= _MAX_PIPELINED_AT_ONCE:
            raise HttpRefusal(429, f"Too many requests: at most {_MAX_PIPELINED_AT_ONCE} may wait for another reply")
        self.cycle = HttpRequest(
            self,
            self.loop,
            self.client,
            self.scope,
            keep_alive=version == "1.1" and self.parser.should_keep_alive(),
            waiting_for_100_continue=(b"expect", b"100-continue") in headers,
            body=bytearray(),
            more_body=True,
        )
        if before is None:
            self._start_asgi_task(self.cycle, self.app)
            return
        if not self.pipeline:
            self._answered = before
        self.pipeline.appendleft((self.cycle, self.app))
        if len(self.pipeline) > _MAX_PIPELINED:  # below it, reading goes on, so that the end of the connection is seen
            self.flow.pause_reading()
