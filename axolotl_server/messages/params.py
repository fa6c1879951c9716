"""The parameters of methods that are not on the hot path, read from the whole message."""

from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from axolotl_core.errors import InvalidParams
from axolotl_core.protocol.identity import Implementation, RequestId

ParamsT = TypeVar("ParamsT", bound=msgspec.Struct)


class InitializeParams(msgspec.Struct, rename="camel"):
    """What a client says of itself in the handshake."""

    protocol_version: str
    capabilities: dict[str, Any]
    client_info: Implementation


class ListParams(msgspec.Struct, frozen=True):
    """Which page of a list."""

    cursor: str | None = None


class CancelledParams(msgspec.Struct, rename="camel"):
    """Which request to stop."""

    request_id: RequestId
    reason: str | None = None


class PromptParams(msgspec.Struct):
    """Which prompt, and its arguments as texts."""

    name: str
    arguments: dict[str, str] = {}


class ResourceParams(msgspec.Struct):
    """Which resource."""

    uri: str


class LevelParams(msgspec.Struct):
    """From which level on log messages are wanted."""

    level: str


class _Reference(msgspec.Struct):
    type: str
    name: str | None = None
    uri: str | None = None


class CompletionParams(msgspec.Struct):
    """Whose argument is to be completed."""

    ref: _Reference


class Wanted(msgspec.Struct, rename="camel", omit_defaults=True):
    """Which changes a listener wants to hear of."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()


class ListenParams(msgspec.Struct):
    """What a listener wants."""

    notifications: Wanted


class _RawMessage(msgspec.Struct):
    params: msgspec.Raw = msgspec.Raw(b"{}")


_read_raw = msgspec.json.Decoder(_RawMessage).decode


def read_raw_params(data: bytes) -> msgspec.Raw:
    """Cut the `params` out of a message."""
    return _read_raw(data).params


def read_params(data: bytes, kind: type[ParamsT]) -> ParamsT:
    """Read the `params` of a message.

    Raises:
        InvalidParams: if they have another shape.
    """
    try:
        params = _decoder(kind).decode(data).params
    except msgspec.ValidationError as error:
        raise InvalidParams(f"Invalid params: {error}") from None
    return cast(ParamsT, params)


@cache
def _decoder(kind: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    default = () if any(field.required for field in msgspec.structs.fields(kind)) else (kind(),)
    message: Any = msgspec.defstruct("Message", [("params", kind, *default)])
    return msgspec.json.Decoder(message)
