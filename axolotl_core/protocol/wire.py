"""Outgoing messages: bytes templates around parts that are encoded once."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pydantic_core

from axolotl_core.errors import InvalidParams, ProtocolError
from axolotl_core.protocol.identity import RequestId

decode_exactly: Final[Any] = msgspec.json.Decoder(float_hook=msgspec.Raw).decode
"""Decodes JSON; a number with a fraction or an exponent stays as it was written: as a float it could equal another."""
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


def canonical_json(raw: bytes) -> bytes:
    """Write JSON with sorted keys and no whitespace; bytes that are no JSON stay as they are."""
    try:
        return _encode_sorted(decode_exactly(raw))
    except (ValueError, RecursionError):
        return raw


def encode_cursor(kind: str, position: int) -> str:
    """Name the place in the list of `kind` after its entry number `position`."""
    return base64.urlsafe_b64encode(f"{kind}:{position}".encode()).decode().rstrip("=")


def decode_cursor(kind: str, cursor: str) -> int:
    """Read a cursor made for the list of `kind`.

    Raises:
        InvalidParams: if the cursor is not one that `encode_cursor` made for this list.
    """
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        position = int(text.removeprefix(f"{kind}:"))
    except (binascii.Error, ValueError):
        position = -1
    if position < 0 or encode_cursor(kind, position) != cursor:
        raise InvalidParams(f"Invalid cursor for {kind}/list: ask again without a cursor to start from the first page")
    return position


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
