"""What all HTTP connections of a server share: objects, limits, and the heads that clients repeat."""

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from http import HTTPStatus
from typing import Final, NamedTuple

from uvicorn.server import ServerState

from axolotl_server.http.app import HttpApp
from axolotl_server.http.asgi import RETRY_AFTER, Headers, HttpRefusal
from axolotl_server.protocol.fair_share import Share, share_of_address

MAX_HEAD_BYTES: Final = 16 * 1024
"""The maximum size of the request line and headers. A larger head gets 431."""
MAX_HEADERS: Final = 100
"""The maximum number of headers in a request. A request with more gets 431."""

CLOSE: Final = (b"connection", b"close")
_MAX_REPLY_HEADS: Final = 1024
_END: Final = b"\r\n\r\n"
_MAX_KNOWN_HEADS: Final = 256
_MAX_KNOWN_BYTES: Final = 2048


class _KnownHead(NamedTuple):
    headers: Mapping[bytes, bytes]
    credentials: slice
    """Where the credentials are; they are not kept."""
    length: int
    """The length of the body."""


class KnownHeads:
    """Heads of posted messages that the parser has accepted, with what it has read from them."""

    def __init__(self) -> None:
        self._heads: dict[bytes, _KnownHead] = {}
        """By the head, or by its digest if it has credentials."""

    def find(self, data: bytes) -> tuple[Mapping[bytes, bytes], bytes | None, bytes] | None:
        """Return the headers, credentials and body of a request, if the data is one whole request with a known head."""
        size = data.find(_END, 0, _MAX_KNOWN_BYTES) + len(_END)
        head = data[:size]
        known = self._heads.get(head) or self._heads.get(_digest(head))
        if known is None or len(data) - size != known.length:
            return None
        return known.headers, data[known.credentials] or None, data[size:]

    def add(self, head: bytes, headers: Mapping[bytes, bytes], credentials: bytes | None, length: int) -> None:
        """Remember a head that was accepted; `headers` are without the credentials."""
        if len(head) > _MAX_KNOWN_BYTES or head.find(_END) != len(head) - len(_END) or credentials == b"":
            return
        if len(self._heads) >= _MAX_KNOWN_HEADS:
            self._heads.clear()
        begin = head.find(credentials or b"")
        place = slice(begin, begin + len(credentials or b""))
        self._heads[head if credentials is None else _digest(head)] = _KnownHead(headers, place, length)


def _digest(head: bytes) -> bytes:
    return blake2b(head, digest_size=32).digest()


class ConnectionState(ServerState):
    """The objects and limits that all connections of a server share."""

    def __init__(self, app: HttpApp, max_connections: int) -> None:
        super().__init__()
        self.app = app
        self.path = app.path.encode()
        self.known_heads = KnownHeads()
        self.heads: dict[tuple[int, int], bytes] = {}
        """The heads of plain JSON replies by status and length; valid until the date changes."""
        self.closes_after_replies = False
        self.answers_directly = True
        """Whether posted messages may be answered without an ASGI scope."""
        self._max_connections = max_connections
        self._max_per_address = app.max_connections_per_address
        self._by_share: dict[Share | None, int] = {}
        self._handshakes: Counter[Share | None] = Counter()
        self._handshaking = 0

    def set_headers(self, headers: Headers) -> None:
        """Set the headers of every response."""
        self.default_headers = list(headers)
        self.heads.clear()

    def make_head(self, status: int, length: int) -> bytes:
        """Make the head of a plain JSON reply, and keep it for others."""
        if len(self.heads) >= _MAX_REPLY_HEADS:
            self.heads.clear()
        lines = [b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode())]
        lines += [b"%b: %b\r\n" % pair for pair in (*self.default_headers, (b"content-type", b"application/json"))]
        self.heads[status, length] = head = b"%bcontent-length: %d\r\n\r\n" % (b"".join(lines), length)
        return head

    def share_of(self, address: str | None) -> Share | None:
        """Return whom a connection counts for; None for trusted proxies, whose connections belong to many clients."""
        return None if address is None or self.app.addresses.is_trusted(address) else share_of_address(address)

    def enter(self, share: Share | None) -> HttpRefusal | None:
        """Count a connection that was added; return a refusal if there are too many."""
        if share is not None:
            self._by_share[share] = self._by_share.get(share, 0) + 1
        if len(self.connections) > self._max_connections:
            return _too_many("the server has too many connections")
        if share is None or self._by_share[share] <= self._max_per_address:
            return None
        return _too_many("this address has too many connections")

    @property
    def is_flooded(self) -> bool:
        """Whether even connections that are refused are too many."""
        return len(self.connections) > _with_refused(self._max_connections)

    def begin_handshake(self, share: Share | None) -> bool:
        """Count a connection that is not encrypted yet; return False if there are too many even to refuse them."""
        if len(self.connections) + self._handshaking >= _with_refused(self._max_connections):
            return False
        of_share = self._by_share.get(share, 0) + self._handshakes[share]
        if share is not None and of_share >= _with_refused(self._max_per_address):
            return False
        self._handshakes[share] += 1
        self._handshaking += 1
        return True

    def end_handshake(self, share: Share | None) -> None:
        """Stop counting a connection that is encrypted now, or has ended."""
        self._handshaking -= 1
        self._handshakes[share] -= 1
        if not self._handshakes[share]:
            del self._handshakes[share]

    def leave(self, share: Share | None) -> None:
        """Stop counting a connection."""
        if share is not None:
            self._by_share[share] -= 1
            if not self._by_share[share]:
                del self._by_share[share]


def _with_refused(limit: int) -> int:
    """Return the number of connections with those that are refused: some may wait for their refusal."""
    return limit * 9 // 8


def _too_many(reason: str) -> HttpRefusal:
    return HttpRefusal(503, f"Service unavailable: {reason}; try again later", headers=[RETRY_AFTER])
