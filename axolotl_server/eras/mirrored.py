"""HTTP headers that repeat parts of the body, so that a gateway can route without reading it."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from axolotl_core.errors import HeaderMismatch, InvalidParams
from axolotl_core.header_parameters import HeaderParameter
from axolotl_core.protocol.messages import Head

__all__ = ["check_mirrored", "check_parameters"]

_PREFIX: Final = b"=?base64?"
_SUFFIX: Final = b"?="
_WHOLE: Final = re.compile(r"-?[0-9]{1,16}(?:\.0+)?")
_NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "task_id",
    "tasks/update": "task_id",
    "tasks/cancel": "task_id",
}


class _Named(msgspec.Struct, rename="camel"):
    name: str | None = None
    uri: str | None = None
    task_id: str | None = None


class _NamedMessage(msgspec.Struct):
    params: _Named


def check_mirrored(headers: Mapping[bytes, bytes], head: Head, version: str, data: bytes) -> None:
    """Compare the routing headers with the body.

    Raises:
        HeaderMismatch: if one is missing or differs.
    """
    _compare(headers, b"mcp-protocol-version", version)
    _compare(headers, b"mcp-method", head.method)
    if head.method == "tools/call":
        if head.params.name is not UNSET:
            _compare(headers, b"mcp-name", head.params.name)
    elif head.method in _NAMED_BY:
        _compare_named(headers, head.method, data)


def check_parameters(headers: Mapping[bytes, bytes], parameters: tuple[HeaderParameter, ...], raw: bytes) -> None:
    """Compare the headers of a tool's annotated arguments with the arguments.

    Raises:
        HeaderMismatch: if one is missing, differs, or stands there without its argument.
        InvalidParams: if the arguments hold a number that no float can.
    """
    try:
        arguments = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        raise InvalidParams('Invalid params: "arguments" hold a number that is out of range') from None
    for parameter in parameters:
        value = parameter.value_in(arguments)
        sent = headers.get(parameter.header)
        if value is None and sent is not None:
            raise _mismatch(parameter.header, "is there, but the body has no such argument")
        if value is not None and not _matches(parameter.header, sent, value):
            raise _mismatch(parameter.header, "does not repeat the argument of the body")


def _compare(headers: Mapping[bytes, bytes], header: bytes, expected: str) -> None:
    sent = headers.get(header)
    if sent == expected.encode():
        return
    if sent is None:
        raise _mismatch(header, "is missing")
    if _decoded(header, sent) != expected:
        raise _mismatch(header, "does not repeat the value of the body")


def _compare_named(headers: Mapping[bytes, bytes], method: str, data: bytes) -> None:
    try:
        named = msgspec.json.decode(data, type=_NamedMessage).params
    except msgspec.ValidationError:
        return
    expected = getattr(named, _NAMED_BY[method])
    if expected is not None:
        _compare(headers, b"mcp-name", expected)


def _matches(header: bytes, sent: bytes | None, value: Any) -> bool:
    if sent is None:
        return False
    text = _decoded(header, sent)
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        return _WHOLE.fullmatch(text) is not None and int(text.partition(".")[0]) == value
    return bool(text == value)


def _decoded(header: bytes, sent: bytes) -> str:
    value = sent.strip(b" \t")
    try:
        if not (value.startswith(_PREFIX) and value.endswith(_SUFFIX)):
            return value.decode("ascii")
        payload = value[len(_PREFIX) : -len(_SUFFIX)]
        plain = base64.b64decode(payload, validate=True)
        if base64.b64encode(plain) != payload:
            raise _mismatch(header, "is not canonical base64")
        return plain.decode()
    except (binascii.Error, UnicodeDecodeError):
        raise _mismatch(header, "cannot be decoded") from None


def _mismatch(header: bytes, problem: str) -> HeaderMismatch:
    return HeaderMismatch(f"Header mismatch: {header.decode('latin-1').title()} {problem}")
