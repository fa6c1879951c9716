"""The parameters of methods that are not on the hot path, read from the whole message."""

from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from axolotl_core.errors import InvalidParams
from axolotl_core.protocol.identity import Implementation, RequestId

__all__ = ["CancelledParams", "InitializeParams", "ListParams", "read_params"]

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
