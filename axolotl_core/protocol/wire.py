"""Outgoing messages: bytes templates around parts that are encoded once."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pydantic_core

from axolotl_core.errors import ProtocolError
from axolotl_core.protocol.identity import RequestId

__all__ = ["encode", "error_message", "json_text", "log_text", "notification", "request_message"]


def _plain(value: Any) -> Any:
    """Give the plain value of a text or number of another class, as parsers and number libraries make them."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


encode = msgspec.json.Encoder(enc_hook=_plain).encode
"""Encodes plain JSON values and the protocol's structs."""


def error_message(request_id: RequestId | None, error: ProtocolError, code: int) -> bytes:
    """Frame an error; without an id where the request's could not be read."""
    body: dict[str, Any] = {"code": code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    head = b"" if request_id is None else b'"id":%b,' % encode(request_id)
    return b'{"jsonrpc":"2.0",%b"error":%b}' % (head, encode(body))


def notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Encode a notification."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return encode(message)


def request_message(request_id: RequestId, method: str, params: Mapping[str, Any]) -> bytes:
    """Encode a request of the server's own."""
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def json_text(value: Any) -> bytes:
    """Encode any JSON value or pydantic model a tool may give.

    Raises:
        ValueError: if it holds something that JSON has no form for; NaN and infinities become null.
    """
    return pydantic_core.to_json(value, inf_nan_mode="null")


def log_text(value: Any) -> bytes:
    """Encode any value for a log message; what JSON has no form for becomes the text that Python has for it."""
    try:
        return pydantic_core.to_json(value, inf_nan_mode="null", fallback=str)
    except Exception:  # a log message must not end what it tells about
        return encode(ascii(value))
