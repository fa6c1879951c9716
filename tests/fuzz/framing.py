"""HTTP requests as bytes, and mutations of their heads and of their framing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Final

Headers = list[tuple[bytes, bytes]]

_VALUES: Final = (
    *(b"", b" ", b"*", b"*/*", b"text/plain", b"text/event-stream", b"application/json; charset=utf-16", b"x" * 300),
    *(
        b"2025-03-26",
        b"2024-11-05",
        b"2026-07-28",
        b"1900-01-01",
        b"tools/call",
        b"tools/list",
        b"echo",
        b"=?base64?ZWNobw==?=",
    ),
    *(b"\xff\xfe", b"\t\t", b"a,b", b"0", b"-1", b"null", b"Bearer x", b"Bearer ", b"Basic eDp5", b"evil.example.com"),
    *(b"http://evil.example.com", b"00000000000000000000000000000000", b"1-2", b"99999999999999999999", b"y" * 9000),
)
_NAMES: Final = (
    *(
        b"Mcp-Session-Id",
        b"Last-Event-ID",
        b"Mcp-Method",
        b"Mcp-Name",
        b"Mcp-Param-x",
        b"MCP-Protocol-Version",
        b"Origin",
    ),
    *(b"Accept", b"Content-Type", b"Content-Encoding", b"Expect", b"Connection", b"X-Forwarded-For", b"traceparent"),
    *(b"Authorization", b"Host", b"Upgrade", b"X" * 300),
)
_LINES: Final = (
    *(
        b"GET /mcp HTTP/1.1",
        b"DELETE /mcp HTTP/1.1",
        b"PUT /mcp HTTP/1.1",
        b"OPTIONS /mcp HTTP/1.1",
        b"HEAD /mcp HTTP/1.1",
    ),
    *(
        b"POST / HTTP/1.1",
        b"POST /mcp/ HTTP/1.1",
        b"POST /mcp?x=1 HTTP/1.1",
        b"POST /%6dcp HTTP/1.1",
        b"POST //mcp HTTP/1.1",
    ),
    *(b"GET /sse HTTP/1.1", b"POST /sse/messages?session=x HTTP/1.1", b"GET /livez HTTP/1.1", b"GET /readyz HTTP/1.1"),
    *(b"GET /console HTTP/1.1", b"GET /metrics HTTP/1.1", b"GET /.well-known/oauth-protected-resource HTTP/1.1"),
    *(b"POST /mcp HTTP/1.0", b"POST /mcp HTTP/2.0", b"POST /mcp", b"post /mcp HTTP/1.1", b"POST  /mcp  HTTP/1.1"),
    *(
        b"POST http://127.0.0.1/mcp HTTP/1.1",
        b"CONNECT 127.0.0.1:1 HTTP/1.1",
        b"PRI * HTTP/2.0",
        b"\x16\x03\x01\x02\x00",
    ),
)


@dataclass(frozen=True)
class Request:
    """An HTTP request."""

    headers: Headers
    body: bytes
    line: bytes = b"POST /mcp HTTP/1.1"
    framing: tuple[tuple[bytes, bytes], ...] | None = None
    """The headers that frame the body; its length unless set."""

    def encode(self) -> bytes:
        """Return the bytes to send."""
        framing = self.framing if self.framing is not None else ((b"Content-Length", b"%d" % len(self.body)),)
        lines = (self.line, *(b"%b: %b" % pair for pair in (*self.headers, *framing)))
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.body


def mutate_request(request: Request, random: Random) -> bytes:
    """Mutate the head or the framing of a request, sometimes both."""
    for _ in range(random.choice((1, 1, 2))):
        request = random.choice(_MUTATIONS)(request, random)
    data = request.encode()
    if random.random() < 0.12:
        head, _, body = data.partition(b"\r\n\r\n")
        return random.choice(_BYTES)(head, random) + b"\r\n\r\n" + body
    return data


def _drop(request: Request, random: Random) -> Request:
    headers = list(request.headers)
    if headers:
        del headers[random.randrange(len(headers))]
    return replace(request, headers=headers)


def _change(request: Request, random: Random) -> Request:
    headers = list(request.headers)
    if headers:
        place = random.randrange(len(headers))
        headers[place] = (headers[place][0], random.choice(_VALUES))
    return replace(request, headers=headers)


def _repeat(request: Request, random: Random) -> Request:
    name, value = random.choice(request.headers or [(b"Host", b"x")])
    return replace(request, headers=[*request.headers, (name, random.choice((value, random.choice(_VALUES))))])


def _add(request: Request, random: Random) -> Request:
    added = [(random.choice(_NAMES), random.choice(_VALUES)) for _ in range(random.choice((1, 1, 2, 120)))]
    return replace(request, headers=[*request.headers, *added])


def _spell(request: Request, random: Random) -> Request:
    change = random.choice((bytes.upper, bytes.lower, bytes.swapcase))
    return replace(request, headers=[(change(name), value) for name, value in request.headers])


def _redirect(request: Request, random: Random) -> Request:
    return replace(request, line=random.choice(_LINES))


def _length(request: Request, random: Random) -> Request:
    size = len(request.body)
    value = random.choice(
        (b"%d" % (size + 10), b"%d" % max(0, size - 3), b"-1", b"", b"0x10", b"%d, %d" % (size, size), b"9" * 25)
    )
    both = ((b"Content-Length", b"%d" % size), (b"Content-Length", value))
    return replace(request, framing=random.choice((((b"Content-Length", value),), both, ())))


def _chunk(request: Request, random: Random) -> Request:
    """Send the body in chunks, most of them valid."""
    body, rest = b"", request.body
    while rest:
        size = random.choice((1, 7, 100, 5000))
        piece, rest = rest[:size], rest[size:]
        extension = random.choice((b"", b"", b"", b";a=b"))
        body += b"%x%b\r\n%b\r\n" % (len(piece), extension, piece)
    ends = (b"0\r\n\r\n",) * 5 + (
        b"0\r\nMcp-Name: x\r\nAuthorization: Bearer y\r\n\r\n",
        b"0\r\n",
        b"",
        b"zz\r\n\r\n",
        b"-1\r\n\r\n",
    )
    coding = random.choice(
        (b"chunked",) * 6 + (b"gzip, chunked", b"chunked, chunked", b"identity", b"xchunked", b" chunked")
    )
    framing: tuple[tuple[bytes, bytes], ...] = ((b"Transfer-Encoding", coding),)
    if random.random() < 0.15:
        framing = (*framing, (b"Content-Length", b"%d" % len(body)))
    return replace(request, body=body + random.choice(ends), framing=framing)


_MUTATIONS: Final[tuple[Callable[[Request, Random], Request], ...]] = (
    *(_drop, _change, _change, _change, _repeat, _add, _add, _spell, _redirect, _length, _chunk, _chunk),
)


def _flip(head: bytes, random: Random) -> bytes:
    place = random.randrange(len(head))
    return head[:place] + bytes((random.randrange(256),)) + head[place + 1 :]


def _fold(head: bytes, random: Random) -> bytes:
    return head.replace(b": ", random.choice((b":\r\n ", b" : ", b":", b"\r\n")), 2)


def _bare(head: bytes, random: Random) -> bytes:
    return head.replace(b"\r\n", random.choice((b"\n", b"\r", b"\r\r\n")))


def _cut(head: bytes, random: Random) -> bytes:
    return head[: random.randrange(1, len(head))]


_BYTES: Final[tuple[Callable[[bytes, Random], bytes], ...]] = (_flip, _flip, _fold, _bare, _cut)
