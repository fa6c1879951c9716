"""Encoded requests, prepared before measuring."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

STATELESS = "2026-07-28"
HANDSHAKE = "2025-11-25"
ANSWER = b'"structuredContent":{"result":5}'
"""A part of every correct reply."""

_META = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
_ARGUMENTS = {"a": 2, "b": 3}
_CALL = {"name": "add", "arguments": _ARGUMENTS}
_INITIALIZE = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def stdio_handshake() -> bytes:
    """Return the line with the request `initialize`."""
    return _message(0, "initialize", _INITIALIZE) + b"\n"


def stdio_initialized() -> bytes:
    """Return the line that ends the handshake."""
    return _INITIALIZED + b"\n"


def stdio_calls(first: int, count: int) -> list[bytes]:
    """Return one line per call, with increasing ids."""
    return [body + b"\n" for body in _bodies(range(first, first + count), _CALL)]


def keyed_calls(first: int, count: int, key: str | None) -> list[bytes]:
    """Return stateless calls without headers, with increasing ids and a unique key each, unless a key is given."""
    ids = range(first, first + count)
    keys = (f"{identifier:08}" if key is None else key for identifier in ids)
    params = ({**_CALL, "arguments": {**_ARGUMENTS, "key": own}, **_META} for own in keys)
    return [_message(identifier, "tools/call", one) for identifier, one in zip(ids, params, strict=True)]


def stateless_calls(port: int, first: int, count: int, headers: Mapping[str, str] | None = None) -> list[bytes]:
    """Return stateless calls with their mirrored headers and others."""
    head = _head(port, {**_mirrored("add"), **(headers or {})})
    return [_post(head, body) for body in _bodies(range(first, first + count), _CALL | _META)]


def stateless_call(port: int, name: str, arguments: Mapping[str, Any] | None = None) -> bytes:
    """Return a stateless call of a tool."""
    return _post(
        _head(port, _mirrored(name)), _message(1, "tools/call", {"name": name, "arguments": arguments or {}} | _META)
    )


def stateless_listen(port: int) -> bytes:
    """Return a request for a stream of notifications."""
    head = _head(port, {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "subscriptions/listen"})
    return _post(head, _message(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}} | _META))


def stateless_list(port: int, cursor: str | None) -> bytes:
    """Return a request for one page of the tools."""
    head = _head(port, {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/list"})
    page = {} if cursor is None else {"cursor": cursor}
    return _post(head, _message(1, "tools/list", page | _META))


def session_initialize(port: int) -> bytes:
    """Return the request that opens a session."""
    return _post(_head(port, {}), _message(0, "initialize", _INITIALIZE))


def session_initialized(port: int, session: str) -> bytes:
    """Return the notification that ends a session's handshake."""
    return _post(_session_head(port, session), _INITIALIZED)


def session_calls(port: int, session: str, first: int, count: int) -> list[bytes]:
    """Return calls in a session, with increasing ids."""
    head = _session_head(port, session)
    return [_post(head, body) for body in _bodies(range(first, first + count), _CALL)]


def session_end(port: int, session: str) -> bytes:
    """Return the request that ends a session."""
    return b"%b\r\n\r\n" % _session_head(port, session).replace(b"POST", b"DELETE", 1)


def _mirrored(name: str) -> dict[str, str]:
    return {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": name}


def _session_head(port: int, session: str) -> bytes:
    return _head(port, {"MCP-Protocol-Version": HANDSHAKE, "Mcp-Session-Id": session})


def _head(port: int, headers: dict[str, str]) -> bytes:
    lines = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode()


def _post(head: bytes, body: bytes) -> bytes:
    return b"%b\r\nContent-Length: %d\r\n\r\n%b" % (head, len(body), body)


def _bodies(ids: Iterable[int], params: dict[str, Any]) -> list[bytes]:
    return [_message(identifier, "tools/call", params) for identifier in ids]


def _message(identifier: int, method: str, params: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode()
