"""Messages and raw HTTP requests of clients."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.servers.serving import PATIENCE_SECONDS

VERSION = "2026-07-28"
META: Mapping[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE: Mapping[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
JSON_HEADERS: Mapping[str, str] = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


def message(method: str, params: Mapping[str, Any] | None = None, *, id: int | str | None = 1) -> bytes:
    """Encode a request, or a notification if the id is None."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if id is not None:
        body["id"] = id
    if params is not None:
        body["params"] = params
    return json.dumps(body).encode()


def call(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    id: int | str = 1,
    token: int | str | None = None,
    handshake: bool = False,
) -> bytes:
    """Encode a tool call."""
    params: dict[str, Any] = {"name": name, "arguments": arguments or {}}
    meta = dict({} if handshake else META)
    if token is not None:
        meta["progressToken"] = token
    return message("tools/call", {**params, "_meta": meta}, id=id)


def mirrored(method: str = "tools/call", name: str | None = None) -> dict[str, str]:
    """Return the headers of a stateless request."""
    headers = {**JSON_HEADERS, "MCP-Protocol-Version": VERSION, "Mcp-Method": method}
    return headers if name is None else {**headers, "Mcp-Name": name}


@dataclass(frozen=True)
class RawReply:
    """A raw HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def error(self) -> Any:
        """The JSON-RPC error in the body."""
        return json.loads(self.body)["error"]


def raw_request(
    body: bytes,
    headers: Iterable[tuple[str, str]],
    *,
    method: str = "POST",
    path: str = "/mcp",
    host: str | None = "localhost",
) -> bytes:
    """Encode an HTTP request exactly as given."""
    lines = [f"{method} {path} HTTP/1.1"]
    if host is not None:
        lines.append(f"Host: {host}")
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def raw_exchange(port: int, data: bytes) -> RawReply:
    """Send bytes and read one response."""
    async with connection(port) as (reader, writer):
        writer.write(data)
        return await read_reply(reader)


@asynccontextmanager
async def connection(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect to a server, with a timeout."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def read_reply(reader: asyncio.StreamReader) -> RawReply:
    """Read one response with a known length."""
    status, headers = await read_head(reader)
    length = int(headers.get("content-length", "0"))
    return RawReply(status, headers, await reader.readexactly(length))


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Read the status and the headers of a response."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {}
    for line in filter(None, head[1:]):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return int(head[0].split()[1]), headers
