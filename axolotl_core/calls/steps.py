"""The results of steps: how they are written, and read again by a later run of the same call."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec
from pydantic import ValidationError

from axolotl_core.errors import ToolError
from axolotl_core.protocol.wire import json_writer, refuse_nan
from axolotl_core.schema import adapter_of, by_type

MAX_STEP_BYTES: Final = 32 * 1024
"""The size of one result; stateless rounds carry all results of a call in a state of 64 KiB."""


class KeptStep(msgspec.Struct, frozen=True):
    """A step of a call that may run more than once."""

    idempotency_key: str
    """A string that is the same in every run of the call, and that no other step shares."""
    value: bytes | None = None
    """The result of an earlier run, as JSON; None if no run has finished the step."""


def step_idempotency_key(call_key: str, key: str) -> str:
    """Identify a step by its key and the call that it belongs to."""
    return sha256(f"{call_key}\n{key}".encode()).hexdigest()[:32]


def write_step(key: str, value: Any, model: Any) -> bytes:
    """Encode a result, or raise ToolError if it is too large, or ValueError if it is not JSON."""
    written = msgspec.json.encode(value) if model is None else _writer(model)(value)
    if model is None and b"null" in written:
        refuse_nan(msgspec.to_builtins(value))
    if len(written) > MAX_STEP_BYTES:
        raise ToolError(f"The result of the step {key!r} has {len(written)} bytes; at most {MAX_STEP_BYTES} are stored")
    return written


def read_step(key: str, written: bytes, model: Any) -> Any:
    """Decode a result, or raise ToolError if it does not fit the model, which may have changed since."""
    if model is None:
        return msgspec.json.decode(written)
    try:
        return adapter_of(model).validate_json(written)
    except ValidationError:
        raise ToolError(f"The stored result of the step {key!r} does not fit {model!r}; call again") from None


@by_type
def _writer(model: Any) -> Callable[[Any], bytes]:
    return json_writer(adapter_of(model))
