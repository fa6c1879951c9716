"""Under which key a call's work is done once."""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from pydantic_core import PydanticSerializationError, to_json

from axolotl_core.canonical import canonical_json
from axolotl_core.errors import ConfigurationError
from axolotl_core.idempotency import Idempotency
from axolotl_core.layer import ToolCall
from axolotl_core.spec import ToolSpec

__all__ = ["CallKey", "NameCall", "call_namer"]

_DIGEST_BYTES: Final = 20
_RECORD_FORMAT: Final = 1
"""To be raised when the form of stored results changes, so that nobody reads one in another form."""
_read_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_NOTHING: Final = (b"null", b'""')


class CallKey(NamedTuple):
    """The key of a call, and the digest of the arguments that are no part of it."""

    key: str
    others: str


_Read: TypeAlias = Callable[[Any, bytes], bytes]

NameCall: TypeAlias = Callable[[ToolCall], CallKey | None]
"""Gives the key of a call; None where it has none."""


def call_namer(rule: Idempotency, spec: ToolSpec) -> NameCall:
    """Compile what names the calls of a tool.

    Keys are digests: they are short, and a store learns nothing of arguments and principals from them.

    Raises:
        ConfigurationError: if the tool has no argument of that name.
    """
    names = rule.arguments
    if not names:
        return lambda call: CallKey(_digest(spec.name, call, [canonical_json(call.raw)]), "")
    readers = {name: _reader(spec, name) for name in names}

    def named(call: ToolCall) -> CallKey | None:
        given = _read_fields(call.raw)
        raw = {name: bytes(given.pop(name, b"null")) for name in names}
        if not set(raw.values()).isdisjoint(_NOTHING):
            return None
        values = [canonical_json(read(call.arguments, raw[name])) for name, read in readers.items()]
        others = canonical_json(msgspec.json.encode(given)) if rule.same_arguments else b""
        return CallKey(_digest(spec.name, call, values), blake2b(others, digest_size=_DIGEST_BYTES).hexdigest())

    return named


def _digest(tool: str, call: ToolCall, values: list[bytes]) -> str:
    whole = msgspec.msgpack.encode((_RECORD_FORMAT, tool, call.principal.identity, values))
    return blake2b(whole, digest_size=_DIGEST_BYTES).hexdigest()


def _reader(spec: ToolSpec, name: str) -> _Read:
    """Find the validated value of an argument, so that two spellings of one value are one key; else take it as sent."""
    if name not in spec.input_schema.get("properties", {}):
        raise ConfigurationError(
            f"Tool {spec.name!r}: its idempotency names the argument {name!r}, which it does not have"
        )
    fields: Mapping[str, Any] = getattr(spec.tool.input_model, "model_fields", {})
    attribute = next((field for field, info in fields.items() if info.validation_alias == name), name)

    def read(arguments: Any, raw: bytes) -> bytes:
        values = arguments if isinstance(arguments, dict) else vars(arguments)
        try:
            return to_json(values[attribute])
        except (KeyError, PydanticSerializationError):
            return raw

    return read
