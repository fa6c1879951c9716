"""Requests of a connection: those that pass through ASGI, and those that are answered directly."""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import unquote

import httptools
import msgspec
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from axolotl_core.protocol.wire import error_message
from axolotl_server.http.asgi import HttpRefusal, send_json
from axolotl_server.protocol.replies import hide_internal

if TYPE_CHECKING:
    from axolotl_server.http.server.http_protocol import HttpProtocol

_PATH: Final = re.compile(rb"[/?#]")

_log: Final = logging.getLogger("axolotl")


def check_framing(headers: Sequence[tuple[bytes, bytes]], version: str) -> bool:
    """Return whether the body is chunked; refuse other versions and codings."""
    if version not in ("1.1", "1.0"):
        raise HttpRefusal(505, f"HTTP version not supported: HTTP/{version}; use HTTP/1.1")
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if codings and version == "1.0":
        raise HttpRefusal(400, "Bad request: HTTP/1.0 has no Transfer-Encoding")
    if len(codings) > 1:
        raise HttpRefusal(400, "Bad request: send Transfer-Encoding only once")
    if codings and codings[0].strip(b" \t").lower() != b"chunked":
        raise HttpRefusal(501, "Not implemented: the only supported Transfer-Encoding is chunked")
    return bool(codings)


def check_target(target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Refuse a target with another host than the header, at which the checks of hosts look."""
    if target.startswith(b"/") or b"://" not in target:
        return
    authority = _PATH.split(target.partition(b"://")[2], 1)[0].lower()
    if authority not in (value.lower() for name, value in headers if name == b"host"):
        raise HttpRefusal(400, "Bad request: the target of the request and its header Host name different servers")


def plain_head(method: bytes, target: bytes, version: str, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Write the head of a request again, without the header Upgrade; refuse CONNECT, which the parser treats alike."""
    if method == b"CONNECT":
        raise HttpRefusal(405, "Method not allowed: use POST", headers=[(b"allow", b"POST, GET, DELETE")])
    lines = b"".join(b"%b: %b\r\n" % (name, value) for name, value in headers if name != b"upgrade")
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method, target, version.encode(), lines)


def make_scope(
    protocol: "HttpProtocol", version: str, method: str, headers: Sequence[tuple[bytes, bytes]]
) -> dict[str, Any]:
    """Make the ASGI scope of a request."""
    url = httptools.parse_url(protocol.url)
    return {
        "type": "http",
        "asgi": {"version": protocol.asgi_version, "spec_version": "2.3"},
        "http_version": version,
        "method": method,
        "scheme": protocol.scheme,
        "path": unquote(url.path.decode("ascii")),
        "raw_path": url.path,
        "query_string": url.query or b"",
        "root_path": "",
        "headers": headers,
        "client": protocol.client,
        "server": protocol.server,
        "state": {},
    }


class RequestTransport:
    """The transport that requests see; closing it leaves the client time to read the reply."""

    def __init__(self, protocol: "HttpProtocol") -> None:
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing
        self.close = protocol.close


_POSTED: Final = MappingProxyType({"type": "http", "method": "POST", "http_version": "1.1"})
"""All that `send` reads from the scope of a posted message."""


class HttpRequest(msgspec.Struct, eq=False):
    """A request of a connection: a message that was posted to the endpoint, or one with an ASGI scope.

    `receive` and `send` are those of uvicorn. Most posted messages need neither, so this is a struct, which is cheap to
    create, and the event is created on first use.
    """

    logger: ClassVar[logging.Logger] = _log
    access_log: ClassVar[bool] = False
    receive: ClassVar[Any] = RequestResponseCycle.receive
    send: ClassVar[Any] = RequestResponseCycle.send

    _protocol: "HttpProtocol"
    loop: asyncio.AbstractEventLoop
    client: tuple[str, int] | None
    """The address and port of the client."""
    scope: Mapping[str, Any] = _POSTED
    response_started: bool = False
    response_complete: bool = False
    disconnected: bool = False
    keep_alive: bool = True
    chunked_encoding: bool | None = None
    expected_content_length: int = 0
    waiting_for_100_continue: bool = False
    body: bytes | bytearray = b""
    more_body: bool = False
    task: asyncio.Task[None] | None = None
    _event: asyncio.Event | None = None

    async def run_asgi(self, app: ASGI3Application) -> None:
        """Run the application; if it fails, answer with an error that has a reference."""
        try:
            await app(self.scope, self.receive, self.send)  # type: ignore[arg-type] # uvicorn knows every scope
        except Exception as error:
            await self.fail(error)

    async def fail(self, error: Exception) -> None:
        """Answer with an error that has a reference; a response that has begun ends with the connection."""
        hidden = hide_internal(error, "the HTTP request")
        if self.response_started:
            self.transport.close()
        elif not self.disconnected:
            await send_json(self.send, 500, error_message(None, hidden, hidden.code), [(b"connection", b"close")])

    def end(self) -> None:
        """Forget the task of the request."""
        self._protocol.server_state.tasks.discard(self.task)

    def write_reply(self, status: int, body: bytes) -> bool:
        """Write a whole JSON reply; return False if the state of the connection needs `send`."""
        protocol = self._protocol
        if self.response_started or self.disconnected or not self.keep_alive or protocol.flow.write_paused:
            return False
        state, reply = protocol.server_state, (status, len(body))
        protocol.transport.write((state.heads.get(reply) or state.make_head(*reply)) + body)
        self.response_started = self.response_complete = True
        if self._event is not None:
            self._event.set()
        if protocol.pipeline or protocol.flow.read_paused or protocol.refusal is not None:
            protocol.on_response_complete()
        return True

    def wake(self) -> None:
        """Continue what waits for the body, or for the end of the request."""
        if self._event is not None:
            self._event.set()

    def watch(self, leave: Callable[[], object]) -> Callable[[], object]:
        """Call `leave` when the connection is lost; an idle stream needs no task for this."""
        self._protocol.on_leave = leave
        if self.disconnected:
            self._protocol.loop.call_soon(leave)
        return self._unwatch

    def _unwatch(self) -> None:
        self._protocol.on_leave = None

    @property
    def message_event(self) -> asyncio.Event:
        """Set when a part of the body has arrived, the client has left or the response is complete."""
        if self._event is None:
            self._event = asyncio.Event()
            if self.body or not self.more_body:
                self._event.set()
        return self._event

    @property
    def transport(self) -> Any:
        """The transport of the connection."""
        return self._protocol.request_transport

    @property
    def flow(self) -> Any:
        """The flow control of the connection."""
        return self._protocol.flow

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of every response."""
        return self._protocol.server_state.default_headers

    def on_response(self) -> None:
        """Continue with the next request of the connection."""
        self._protocol.on_response_complete()
