"""What came of a call as bytes that a store can keep, and back.

An output is stored as what its caller is told, not as the object that the tool gave: whatever can be sent can be
stored, it comes back the same, and nobody can change it meanwhile.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET
from pydantic import BaseModel
from pydantic_core import from_json

from axolotl_core.content import (
    Annotations,
    AudioContent,
    BlobResource,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResource,
    ToolResult,
)
from axolotl_core.errors import Refused, ToolError
from axolotl_core.output import BLOCKS, is_structured
from axolotl_core.protocol.wire import encode, json_text
from axolotl_core.spec import ToolSpec

__all__ = ["WriteOutput", "output_writer", "read_record", "too_large", "write_failure"]

WriteOutput: TypeAlias = Callable[[Any, str], bytes]
"""Makes a record of an output and the digest of the arguments beside the key; raises what sending it would raise."""


class _Structured(msgspec.Struct, tag="structured", array_like=True):
    body: bytes


class _Whole(msgspec.Struct, tag="whole", array_like=True):
    content: bytes
    structured: bytes | None
    is_error: bool
    meta: bytes | None


class _Failure(msgspec.Struct, tag="failure", array_like=True):
    message: str
    meta: bytes | None


class _TooLarge(msgspec.Struct, tag="too_large", array_like=True):
    size: int


class _Record(msgspec.Struct, array_like=True):
    others: str
    told: _Structured | _Whole | _Failure | _TooLarge


class _Embedded(msgspec.Struct, tag_field="type", tag="resource"):
    """An embedded resource, whose form only its own fields tell."""

    resource: msgspec.Raw
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")

    def block(self) -> EmbeddedResource:
        is_blob = "blob" in _read_fields(self.resource)
        resource = _read_blob(self.resource) if is_blob else _read_text(self.resource)
        return EmbeddedResource(resource, self.annotations, self.meta)


_Stored: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | _Embedded

_read_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_text: Final = msgspec.json.Decoder(TextResource).decode
_read_blob: Final = msgspec.json.Decoder(BlobResource).decode
_read_blocks: Final = msgspec.json.Decoder(tuple[_Stored, ...]).decode
_write: Final = msgspec.msgpack.Encoder().encode
_read: Final = msgspec.msgpack.Decoder(_Record).decode


def output_writer(spec: ToolSpec) -> WriteOutput:
    """Compile what makes records of a tool's outputs."""
    if not is_structured(spec.tool.output_model):
        return lambda output, others: _write(_Record(others, _whole(_result_of(output))))
    adapter, declared = spec.tool.output_adapter, spec.tool.output_model
    check, to_json = adapter.validator.validate_python, adapter.serializer.to_json

    def write(output: Any, others: str) -> bytes:
        if isinstance(output, ToolResult) and type(output) is not declared:
            return _write(_Record(others, _whole(output)))
        checked = output if type(output) is declared else check(output)
        return _write(_Record(others, _Structured(to_json(checked, by_alias=True))))

    return write


def write_failure(error: ToolError, others: str) -> bytes:
    """Make a record of what a tool raised."""
    return _write(_Record(others, _Failure(error.message, None if error.meta is None else encode(error.meta))))


def too_large(size: int, others: str) -> bytes:
    """Make the record of work that was done but whose result is not kept."""
    return _write(_Record(others, _TooLarge(size)))


def read_record(record: bytes, others: str) -> ToolResult:
    """Give the result that is in a record, marked as one that was given before.

    Raises:
        ToolError: if that is what is stored.
        Refused: if the other arguments differ, or the result was too large to be stored.
        msgspec.MsgspecError: if it is no record.
    """
    kept = _read(record)
    if kept.others != others:
        raise Refused(
            "A call with the same key, but other arguments, was made before; use another key for another call",
            meta={"reason": "key_reused"},
        )
    match kept.told:
        case _Structured(body):
            return ToolResult((TextContent(body.decode()),), from_json(body), meta={"replayed": True})
        case _Whole(content, structured, is_error, meta):
            value = UNSET if structured is None else from_json(structured)
            return ToolResult(_blocks(content), value, is_error, _marked(meta))
        case _Failure(message, meta):
            raise ToolError(message, meta=_marked(meta))
        case _TooLarge(size):
            raise Refused(
                f"This was done before; its result has {size} bytes, too many to be stored",
                meta={"reason": "replay_too_large", "replayed": True},
            )


def _blocks(content: bytes) -> tuple[ContentBlock, ...]:
    return tuple(stored.block() if isinstance(stored, _Embedded) else stored for stored in _read_blocks(content))


def _marked(meta: bytes | None) -> Mapping[str, Any]:
    return {**({} if meta is None else msgspec.json.decode(meta)), "replayed": True}


def _whole(result: ToolResult) -> _Whole:
    structured = None if result.structured is UNSET else json_text(result.structured)
    meta = None if result.meta is None else encode(result.meta)
    return _Whole(encode(list(result.content)), structured, result.is_error, meta)


def _result_of(output: Any) -> ToolResult:
    """Give the whole result of an output without a declared form, as it is sent."""
    if isinstance(output, ToolResult):
        return output
    if isinstance(output, str):
        return ToolResult((TextContent(_encodable(output)),))
    if output is None:
        return ToolResult()
    if isinstance(output, BLOCKS):
        return ToolResult((output,))
    if isinstance(output, Sequence) and all(isinstance(item, BLOCKS) for item in output):
        return ToolResult(output)
    text = json_text(output).decode()
    return ToolResult((TextContent(text),), output if isinstance(output, Mapping | BaseModel) else UNSET)


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
