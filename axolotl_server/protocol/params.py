"""The parameters of methods that are rarely called, read from the whole message."""

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from axolotl_core.errors import InvalidParams
from axolotl_core.protocol.client_text import shorten
from axolotl_core.protocol.identity import Implementation, RequestId

ParamsT = TypeVar("ParamsT", bound=msgspec.Struct)


class InitializeParams(msgspec.Struct, rename="camel"):
    """The parameters of `initialize`."""

    protocol_version: str
    capabilities: dict[str, Any]
    client_info: Implementation


class ListParams(msgspec.Struct, frozen=True):
    """The parameters of every list method."""

    cursor: str | None = None


class CancelledParams(msgspec.Struct, rename="camel"):
    """The parameters of `notifications/cancelled`."""

    request_id: RequestId
    reason: str | None = None


class PromptParams(msgspec.Struct):
    """The parameters of `prompts/get`; arguments are strings."""

    name: str
    arguments: dict[str, str] = {}


class ResourceParams(msgspec.Struct):
    """The parameters of methods that name a resource."""

    uri: str


class LevelParams(msgspec.Struct):
    """The parameters of `logging/setLevel`."""

    level: str


class _Reference(msgspec.Struct):
    type: str
    name: str | None = None
    uri: str | None = None


class CompletionParams(msgspec.Struct):
    """The reference to the prompt or template whose arguments are completed."""

    ref: _Reference


class SubscriptionFilter(msgspec.Struct, rename="camel", omit_defaults=True):
    """The changes that a listener subscribes to."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: tuple[str, ...] = ()


class ListenParams(msgspec.Struct):
    """The parameters of `subscriptions/listen`."""

    notifications: SubscriptionFilter


def listen_params(topics: Iterable[str]) -> type[ListenParams]:
    """Make the type of the parameters with the topics of extensions, each of which has a list of names."""
    names = [(topic, tuple[str, ...], ()) for topic in topics]
    bases = (SubscriptionFilter,)
    known = msgspec.defstruct("KnownFilter", names, bases=bases, rename="camel", omit_defaults=True)
    made: Any = msgspec.defstruct("KnownParams", [("notifications", known)], bases=(ListenParams,))
    return cast(type[ListenParams], made)


class _RawMessage(msgspec.Struct):
    params: msgspec.Raw = msgspec.Raw(b"{}")


_read_raw = msgspec.json.Decoder(_RawMessage).decode


def read_raw_params(data: bytes) -> msgspec.Raw:
    """Return the raw `params` of a message."""
    return _read_raw(data).params


def read_params(data: bytes, kind: type[ParamsT]) -> ParamsT:
    """Read the `params` of a message, or raise InvalidParams if they are not valid."""
    try:
        params = _decoder(kind).decode(data).params
    except msgspec.ValidationError as error:
        return _read_without_nulls(data, kind, error)
    return cast(ParamsT, params)


def _read_without_nulls(data: bytes, kind: type[ParamsT], error: msgspec.ValidationError) -> ParamsT:
    try:
        return convert_without_nulls(msgspec.json.decode(data).get("params"), kind)
    except msgspec.ValidationError:
        raise InvalidParams(f"Invalid params: {shorten(str(error))}") from None


def convert_without_nulls(value: Any, kind: type[ParamsT]) -> ParamsT:
    """Convert decoded parameters; an optional member whose value is null counts as absent."""
    return msgspec.convert(_without_nulls(value or {}), kind)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    return list(map(_without_nulls, value)) if isinstance(value, list) else value


@cache
def _decoder(kind: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    default = () if any(field.required for field in msgspec.structs.fields(kind)) else (kind(),)
    message: Any = msgspec.defstruct("Message", [("params", kind, *default)])
    return msgspec.json.Decoder(message)
