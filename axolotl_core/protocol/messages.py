"""Decoding of incoming messages, log levels, and W3C trace context."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from axolotl_core.errors import InvalidEnvelope, InvalidParams, InvalidRequest, ParseError, ProtocolError
from axolotl_core.protocol.identity import RequestId
from axolotl_core.protocol.json_limits import (
    MAX_VALUES,
    check_limits,
    duplicate_error,
    find_duplicate,
    has_duplicates,
    read_leniently,
    too_deep,
)

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: Final[tuple[str, ...]] = get_args(LogLevel)
"""All levels, the least severe first."""


def is_at_least(level: str, threshold: str) -> bool:
    """Whether a level is as severe as a threshold."""
    return LEVELS.index(level) >= LEVELS.index(threshold)


MAX_NAME_LENGTH: Final = 128
_SMALL_BYTES: Final = 1024
"""Depth and values of smaller messages are not checked, because every parser can handle them."""
PROTOCOL_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
CLIENT_INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
PROTOCOL_PREFIX: Final = "io.modelcontextprotocol/"
"""The beginning of all keys of `_meta` that the protocol reserves."""
TARGET_MEMBERS: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The member of `params` that names the target of a method, and that the header `Mcp-Name` repeats."""
_PROGRESS_TOKEN_KEY: Final = "progressToken"
_MAX_ID: Final = 2**53 - 1

_Id = Annotated[int, Meta(ge=-_MAX_ID, le=_MAX_ID)] | Annotated[str, Meta(max_length=MAX_NAME_LENGTH)]
_Name = Annotated[str, Meta(max_length=MAX_NAME_LENGTH)]


class RequestMeta(
    msgspec.Struct,
    gc=False,
    rename={
        "version": PROTOCOL_VERSION_KEY,
        "capabilities": CLIENT_CAPABILITIES_KEY,
        "client_info": CLIENT_INFO_KEY,
        "log_level": LOG_LEVEL_KEY,
        "progress_token": _PROGRESS_TOKEN_KEY,
    },
):
    """The keys of `params._meta` that the server reads."""

    version: str | UnsetType = UNSET
    capabilities: dict[str, Raw] | UnsetType = UNSET
    client_info: Raw | UnsetType = UNSET
    log_level: str | UnsetType = UNSET
    progress_token: _Id | UnsetType = UNSET


class Params(
    msgspec.Struct,
    gc=False,
    rename={"request_state": "requestState", "input_responses": "inputResponses", "meta": "_meta"},
):
    """The parameters that determine the target of a message. Methods decode the other ones themselves."""

    name: _Name | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    meta: RequestMeta | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
    input_responses: Raw | UnsetType = UNSET


class Head(msgspec.Struct, gc=False):
    """The head of a request, which has an ID, or of a notification, which has none."""

    jsonrpc: Literal["2.0"]
    method: _Name
    id: _Id | UnsetType = UNSET
    params: Params = msgspec.field(default_factory=Params)


class Irregular(Exception):
    """A message is not a plain request or notification; `diagnose` finds out what it is."""


class Diagnosis(NamedTuple):
    """A message that is not a plain request or notification."""

    message: Any
    """The decoded message."""
    problem: ProtocolError | None = None
    """Why it cannot be handled, whatever it is."""


class _Identified(msgspec.Struct):
    method: _Name
    id: _Id


_decode_head: Final = msgspec.json.Decoder(Head).decode
_decode_identified: Final = msgspec.json.Decoder(_Identified).decode
_decode_anything: Final = msgspec.json.Decoder().decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_encode: Final = msgspec.json.Encoder().encode
_NULL: Final = Raw(b"null")


def read_head(data: bytes, max_values: int = MAX_VALUES) -> Head:
    """Decode a single message. Duplicate members of its arguments are found when the arguments are parsed.

    Raises:
        Irregular: if it is not a plain request or notification.
        ParseError: if it is nested too deeply.
        InvalidRequest: if it has too many values.
    """
    if len(data) > _SMALL_BYTES:
        check_limits(data, max_values)
    try:
        if not data.isascii():
            data.decode()
        head = _decode_head(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Irregular from None
    except RecursionError:
        raise too_deep() from None
    # The usual message consists of the members above, without whitespace: then none of them occurs twice.
    if len(_encode(head)) != len(data) and has_duplicates(data):
        raise Irregular
    return head


def read_id(data: bytes) -> RequestId | None:
    """Read only the ID of a request, without decoding the rest; None if it has none."""
    try:
        return _decode_identified(data).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def diagnose(data: bytes, max_values: int = MAX_VALUES) -> Diagnosis:
    """Decode a message that `read_head` rejected.

    Raises:
        ParseError: if it is not JSON or is nested too deeply.
        InvalidRequest: if it has too many values.
    """
    check_limits(data, max_values)
    try:
        message = _decode_anything(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _diagnose_leniently(data, _OUT_OF_RANGE if isinstance(error, msgspec.ValidationError) else _HALF_PAIR)
    if not has_duplicates(data):
        return Diagnosis(message)
    if isinstance(message, dict) and find_duplicate(data) == "id":
        del message["id"]
    return Diagnosis(message, duplicate_error(data))


def _diagnose_leniently(data: bytes, problem: str) -> Diagnosis:
    """Decode JSON that only a lenient decoder can read, so that the error has the ID of the request."""
    try:
        message = read_leniently(data)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict) or (problem == _OUT_OF_RANGE and usable_id(message) is None):
        raise ParseError("Parse error: the message is not valid JSON in UTF-8") from None
    return Diagnosis(message, InvalidParams(f"Invalid params: {problem}"))


_OUT_OF_RANGE: Final = "a number is out of range"
_HALF_PAIR: Final = "a string contains half of a surrogate pair (such as \\ud800 alone), which is not a character"
_OPTIONAL_PARAMS: Final = frozenset({"_meta", "arguments", "requestState", "inputResponses", "cursor", "task"})
_OPTIONAL_META: Final = frozenset({LOG_LEVEL_KEY, CLIENT_INFO_KEY, "progressToken"})


def without_nulls(data: bytes) -> bytes | None:
    """Remove optional members whose value is null, because they count as absent; None if there are none."""
    try:
        message = _decode_members(data)
        if "params" not in message:
            return None
        if message["params"] == _NULL:
            del message["params"]
            return _encode(message)
        params = _decode_members(message["params"])
        found = _drop_nulls(params, _OPTIONAL_PARAMS)
        if "_meta" in params:
            meta = _decode_members(params["_meta"])
            if _drop_nulls(meta, _OPTIONAL_META):
                params["_meta"], found = Raw(_encode(meta)), True
    except msgspec.ValidationError:
        return None
    return _encode({**message, "params": params}) if found else None


def _drop_nulls(members: dict[str, Raw], optional: frozenset[str]) -> bool:
    nulls = [name for name in optional if members.get(name) == _NULL]
    for name in nulls:
        del members[name]
    return bool(nulls)


def explain_shape(message: dict[str, Any]) -> ProtocolError:
    """Explain why a JSON object is not a valid request."""
    if message.get("jsonrpc") != "2.0":
        return InvalidRequest('Invalid request: "jsonrpc" must be "2.0"')
    if not _is_name(message.get("method")):
        return InvalidRequest(f'Invalid request: "method" must be a string of at most {MAX_NAME_LENGTH} characters')
    if "id" in message and usable_id(message) is None:
        return InvalidRequest(
            f'Invalid request: "id" must be a string of at most {MAX_NAME_LENGTH} characters, or an integer within '
            "±(2^53-1), not null"
        )
    return _explain_params(message.get("params"))


def usable_id(message: dict[str, Any]) -> RequestId | None:
    """Return the ID of a message; None if it is missing or invalid."""
    candidate = message.get("id")
    if isinstance(candidate, str):
        return candidate if len(candidate) <= MAX_NAME_LENGTH and is_encodable(candidate) else None
    if isinstance(candidate, int) and not isinstance(candidate, bool):
        return candidate if abs(candidate) <= _MAX_ID else None
    return None


def is_encodable(text: str) -> bool:
    """Whether a text can be sent: it has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _explain_params(params: Any) -> ProtocolError:
    if not isinstance(params, dict):
        return InvalidEnvelope('Invalid params: "params" must be an object')
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        return InvalidEnvelope('Invalid params: "_meta" must be an object')
    if not isinstance(meta.get(PROTOCOL_VERSION_KEY, ""), str):
        return InvalidEnvelope(f'Invalid params: "{PROTOCOL_VERSION_KEY}" must be a string')
    if not isinstance(meta.get(CLIENT_CAPABILITIES_KEY, {}), dict):
        return InvalidEnvelope(f'Invalid params: "{CLIENT_CAPABILITIES_KEY}" must be an object')
    if not isinstance(meta.get(LOG_LEVEL_KEY, ""), str):
        return InvalidParams(f'Invalid params: "{LOG_LEVEL_KEY}" must be a string')
    if not isinstance(params.get("requestState", ""), str):
        return InvalidParams('Invalid params: "requestState" must be the string that the server sent')
    if "name" in params and not _is_name(params["name"]):
        return InvalidParams(f'Invalid params: "name" must be a string of at most {MAX_NAME_LENGTH} characters')
    return InvalidParams(
        f'Invalid params: "progressToken" must be a string of at most {MAX_NAME_LENGTH} characters, or an integer '
        "within ±(2^53-1)"
    )


def _is_name(candidate: Any) -> bool:
    return isinstance(candidate, str) and len(candidate) <= MAX_NAME_LENGTH


class _MetaParams(msgspec.Struct):
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class _MetaMessage(msgspec.Struct):
    params: _MetaParams | None = None


_decode_meta: Final = msgspec.json.Decoder(_MetaMessage).decode


def read_meta(data: bytes) -> Mapping[str, Any]:
    """Decode the `_meta` of a message that `read_head` accepted, without the keys of the protocol."""
    params = _decode_meta(data).params
    meta = {} if params is None else params.meta or {}
    own = (key for key in meta if key != _PROGRESS_TOKEN_KEY and not key.startswith(PROTOCOL_PREFIX))
    return MappingProxyType({key: meta[key] for key in own})


_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_MAX_TRACE: Final = 8192


class TraceContext(msgspec.Struct, frozen=True):
    """The trace context that a caller sent. It cannot be trusted."""

    traceparent: str
    tracestate: str | None = None
    baggage: str | None = None

    @property
    def trace_id(self) -> str:
        """The ID of the trace."""
        return self.traceparent.split("-")[1]

    @property
    def parent_id(self) -> str:
        """The ID of the span that sent the request."""
        return self.traceparent.split("-")[2]


def read_trace(traceparent: object, tracestate: object, baggage: object) -> TraceContext | None:
    """Parse a trace context. Malformed values are ignored."""
    if not isinstance(traceparent, str) or len(traceparent) > _MAX_TRACE or not _TRACEPARENT.fullmatch(traceparent):
        return None
    return TraceContext(traceparent, _text(tracestate), _text(baggage))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_TRACE and value.isprintable() else None
