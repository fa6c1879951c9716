"""The era of the stateless revision, whose requests carry everything that is needed to handle them."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from axolotl_core.errors import (
    HeaderMismatch,
    InvalidEnvelope,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    MissingCapability,
    ParseError,
    ProtocolError,
    ResourceNotFound,
    ToolNotFound,
    UnsupportedVersion,
)
from axolotl_core.features.spec import HeaderParameter
from axolotl_core.layers import Call
from axolotl_core.protocol import codes
from axolotl_core.protocol.messages import (
    CLIENT_CAPABILITIES_KEY,
    LEVELS,
    LOG_LEVEL_KEY,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
    TARGET_MEMBERS,
    Head,
    RequestMeta,
)
from axolotl_core.protocol.versions import STATELESS_REVISIONS
from axolotl_core.protocol.wire import encode
from axolotl_core.resources.resource import CacheHint
from axolotl_server.calls.asking import AskingInRounds
from axolotl_server.protocol.connection import MAX_CLIENT_BYTES
from axolotl_server.protocol.eras.era import IEra
from axolotl_server.protocol.request import Request

_PREFIX: Final = b"=?base64?"
_SUFFIX: Final = b"?="
_WHOLE: Final = re.compile(r"-?[0-9]{1,16}(?:\.0+)?")


def _decoder(member: str) -> msgspec.json.Decoder[Any]:
    """Make a decoder that reads one member of `params`, whatever the others are."""
    params = msgspec.defstruct("Params", [("value", Any, msgspec.field(name=member, default=None))])
    return msgspec.json.Decoder(msgspec.defstruct("Message", [("params", params)]))


_DECODERS: Final = {member: _decoder(member) for member in set(TARGET_MEMBERS.values())}


def check_mirrored(headers: Mapping[bytes, bytes], head: Head, version: str, data: bytes) -> None:
    """Compare the routing headers with the body, or raise HeaderMismatch if one is missing or differs."""
    method, name = head.method, head.params.name
    if method == "tools/call" and name is not UNSET:
        sent = headers.get(b"mcp-protocol-version"), headers.get(b"mcp-method"), headers.get(b"mcp-name")
        if sent == (version.encode(), method.encode(), name.encode()):
            return  # so it is with nearly all messages
    _compare(headers, b"mcp-protocol-version", version)
    _compare(headers, b"mcp-method", method)
    if method == "tools/call":
        if name is not UNSET:
            _compare(headers, b"mcp-name", name)
    elif method in TARGET_MEMBERS:
        _compare_named(headers, method, data)


def check_parameters(headers: Mapping[bytes, bytes], parameters: tuple[HeaderParameter, ...], raw: bytes) -> None:
    """Compare the headers that repeat arguments with the arguments, or raise HeaderMismatch if they differ."""
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
    member = TARGET_MEMBERS[method]
    try:
        expected = _DECODERS[member].decode(data).params.value
    except msgspec.ValidationError:  # there are no params; the method reports that
        return
    if expected is not None and not isinstance(expected, str):
        raise _mismatch(b"mcp-name", f"cannot be compared with the body, where {member} is not a string")
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


def _client_bytes(meta: RequestMeta) -> int:
    """Count the bytes that a client sends about itself."""
    capabilities = {} if meta.capabilities is UNSET else meta.capabilities
    info = 0 if meta.client_info is UNSET else len(meta.client_info)
    return info + sum(len(name) + len(value) for name, value in capabilities.items())


_BAD_REQUESTS: Final = (
    HeaderMismatch,
    InvalidEnvelope,
    InvalidRequest,
    MissingCapability,
    ParseError,
    UnsupportedVersion,
)


class StatelessEra(IEra):
    """A stateless revision."""

    cancel_on_disconnect = True

    asking: AskingInRounds

    def admit(self, request: Request) -> None:
        """Make the checks in the order of the protocol: envelope, headers, version."""
        head = request.head
        meta = head.params.meta
        if meta is UNSET or meta.version is UNSET or meta.capabilities is UNSET:
            raise InvalidEnvelope(
                f"Invalid params: params._meta must hold {PROTOCOL_VERSION_KEY} and {CLIENT_CAPABILITIES_KEY}"
            )
        if len(request.data) > MAX_CLIENT_BYTES and _client_bytes(meta) > MAX_CLIENT_BYTES:
            raise InvalidEnvelope(
                f"Invalid params: client and capabilities in params._meta have more than {MAX_CLIENT_BYTES} bytes"
            )
        headers = request.exchange.headers
        if headers is not None:
            check_mirrored(headers, head, meta.version, request.data)
        if meta.version != self.revision.name:
            raise UnsupportedVersion(meta.version, [revision.name for revision in STATELESS_REVISIONS])
        if meta.log_level is not UNSET and meta.log_level not in LEVELS and head.method in self.methods:
            raise InvalidParams(f"Invalid params: {LOG_LEVEL_KEY} must be one of {', '.join(LEVELS)}")

    def tail_with_meta(self, meta: Mapping[str, Any] | None) -> bytes:
        return b',"resultType":"complete","_meta":%b}' % encode({**(meta or {}), SERVER_INFO_KEY: self.identity})

    def cacheable_tail(self, hint: CacheHint) -> bytes:
        return b',"ttlMs":%d,"cacheScope":"%b"%b' % (round(hint.ttl_seconds * 1000), hint.scope.encode(), self.tail)

    def open_rounds(self, request: Request, call: Call) -> None:
        self.asking.open(request, call)

    def input_required(self, request: Request, call: Call) -> bytes:
        questions = self.asking.result(request, call)
        return b'%b,"resultType":"input_required","_meta":%b}' % (questions, encode({SERVER_INFO_KEY: self.identity}))

    def code_of(self, error: ProtocolError) -> int:
        # An unknown feature is a wrong parameter here: an unknown method would mean HTTP 404.
        if isinstance(error, ToolNotFound) and self.settings.unknown_tool != "method_not_found":
            return codes.INVALID_PARAMS
        if isinstance(error, ResourceNotFound):
            return codes.INVALID_PARAMS
        return error.code

    def status_of(self, error: ProtocolError) -> int:
        """Give 400 to wrong requests and 404 to unknown methods; other errors are visible in the body only."""
        if isinstance(error, _BAD_REQUESTS):
            return 400
        return 404 if isinstance(error, MethodNotFound) else 200
