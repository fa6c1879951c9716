"""Encoding of outgoing messages, list cursors, and canonical JSON."""

import base64
import binascii
import functools
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any, Final

import msgspec
import pydantic_core
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, SchemaSerializer

from axolotl_core.errors import InvalidParams, ProtocolError
from axolotl_core.protocol.identity import RequestId

decode_exactly: Final[Any] = msgspec.json.Decoder(float_hook=msgspec.Raw).decode
"""Decodes JSON, but keeps numbers with a fraction or exponent as text, because floats could lose digits."""
encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode
"""Encodes plain JSON values with sorted keys and no whitespace."""


def canonical_json(raw: bytes) -> bytes:
    """Normalize JSON: sorted keys, no whitespace. Invalid JSON is returned unchanged."""
    try:
        return encode_sorted(decode_exactly(raw))
    except (ValueError, RecursionError):
        return raw


def encode_cursor(kind: str, position: int) -> str:
    """Encode a position in the list of `kind`."""
    return base64.urlsafe_b64encode(f"{kind}:{position}".encode()).decode().rstrip("=")


def decode_cursor(kind: str, cursor: str, method: str = "list") -> int:
    """Decode a position in the list of `kind`, which the method `kind/method` gives.

    Raises:
        InvalidParams: if the cursor is not one of this list.
    """
    try:
        text = read_base64url(cursor).decode("ascii")
        position = int(text.removeprefix(f"{kind}:"))
    except (binascii.Error, ValueError):
        position = -1
    if position < 0 or encode_cursor(kind, position) != cursor:
        raise InvalidParams(f"Invalid cursor for {kind}/{method}: leave it out to start with the first page")
    return position


def _plain(value: Any) -> Any:
    """Convert strings and numbers of subclasses, such as those of parsers and number libraries."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"{type(value).__name__} cannot be serialized to JSON")


encode = msgspec.json.Encoder(enc_hook=_plain).encode
"""Encodes plain JSON values and structs of the protocol."""


def error_message(request_id: RequestId | None, error: ProtocolError, code: int) -> bytes:
    """Encode an error response, without an ID if the ID of the request is unknown."""
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
    """Encode a request from the server."""
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def json_text(value: Any) -> bytes:
    """Encode a JSON value or pydantic model.

    Raises:
        ValueError: if it cannot be serialized to JSON, as NaN and infinity.
    """
    text = pydantic_core.to_json(value, inf_nan_mode="null")  # but models have modes of their own
    if text.find(b"null") >= 0 or text.find(b"NaN") >= 0 or text.find(b"Infinity") >= 0:
        refuse_nan(pydantic_core.to_jsonable_python(value, inf_nan_mode="constants"))
    return text


def json_writer(adapter: TypeAdapter[Any]) -> Callable[[Any], bytes]:
    """Compile the function that encodes values of a type as `json_text` does.

    Pydantic writes NaN and infinity as null, unless a model says otherwise. Only values with a null that is not a field
    without a value are looked at for a second time.
    """
    to_json = adapter.serializer.to_json

    @functools.cache  # few types need it
    def exact() -> SchemaSerializer:
        return SchemaSerializer(adapter.core_schema, pydantic_core.CoreConfig(ser_json_inf_nan="constants"))

    def write(value: Any) -> bytes:
        text = to_json(value, by_alias=True)
        # It is searched by `find`, because `in` first tries to read a word as a number, which is slow.
        is_lost = text.find(b"null") >= 0 and b"null" in to_json(
            value, by_alias=True, exclude_none=True, warnings=False
        )
        if is_lost or text.find(b"NaN") >= 0 or text.find(b"Infinity") >= 0:
            refuse_nan(exact().to_python(value, mode="json", by_alias=True, warnings=False))
        return text

    return write


def refuse_nan(value: Any) -> None:
    """Raise a ValueError if a plain JSON value holds NaN or infinity."""
    text = pydantic_core.to_json(value, inf_nan_mode="constants")
    if b"NaN" not in text and b"Infinity" not in text:
        return
    for place, number in _floats(value, ""):
        if not isfinite(number):
            raise PydanticSerializationError(f"{place or 'it'} is {number}, and JSON has no such number")


def _floats(value: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield place, value
    elif isinstance(value, dict | list | tuple):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _floats(inner, f"{place}.{key}" if place else str(key))


def log_text(value: Any) -> bytes:
    """Encode any value for a log message, with `str` if it cannot be serialized to JSON."""
    try:
        return pydantic_core.to_json(value, inf_nan_mode="null", fallback=str)
    except Exception:  # a log message must never raise
        return encode(ascii(value))


def read_base64url(text: str) -> bytes:
    """Decode URL-safe Base64 without padding, or raise ValueError; the decoders of some Pythons skip characters."""
    if "+" in text or "/" in text:
        raise ValueError("It is not URL-safe Base64")
    return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
