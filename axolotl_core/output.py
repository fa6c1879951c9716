"""Outputs of features: their size before they are encoded, and their form as plain bytes."""

import dataclasses
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET
from pydantic import BaseModel, TypeAdapter
from pydantic_core import from_json

from axolotl_core.content import (
    BLOCKS,
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
    is_structured,
)
from axolotl_core.errors import ResultTooLarge
from axolotl_core.protocol.wire import encode, json_text, json_writer

_CHUNK: Final = 64 * 1024
_LONG_TEXT: Final = 1000
_LEAST_ITEM: Final = 16
"""What an item of an iterator counts at least, because it has to be kept in memory."""
LONGEST_ESCAPE: Final = 6
"""How many bytes one character of a text can have in JSON."""
_MAX_DEPTH: Final = 255
"""Where encoders give up."""


def bounded(output: Any, max_bytes: int) -> Any:
    """Return an output whose JSON is hardly larger than a limit, or raise ResultTooLarge.

    The output is measured before anything is encoded. Iterators, which may be endless, become lists.
    """
    outputs = [output]
    _Budget(max_bytes).spend(outputs, 0, outputs)
    return outputs[0]


class _Budget:
    """The bytes that the rest of an output may have."""

    __slots__ = ("_left", "_limit")

    def __init__(self, max_bytes: int) -> None:
        self._limit = self._left = max_bytes

    def spend(self, values: Iterable[Any], depth: int, owner: Any) -> None:
        """Count some values and everything in them; `owner` is the container whose iterators are replaced.

        Every output is counted, so most values are counted without a function call.
        """
        for value in values:
            kind: Any = type(value)
            if kind is str:
                size = len(value)
                if size > _LONG_TEXT or not value.isascii():
                    size = _text_size(value, self._left)
                self._left -= size
            elif kind in _SCALARS:
                self._left -= 1
            elif depth > _MAX_DEPTH:
                return
            else:
                self._left -= 2
                self._spend_on_container(value, depth + 1, owner)
            if self._left < 0:
                raise ResultTooLarge(None, self._limit)

    def _spend_on_container(self, value: Any, depth: int, owner: Any) -> None:
        """Count the parts of a value; other objects are small, or cannot be encoded."""
        if isinstance(value, list | dict | tuple):  # the usual ones first
            self._spend_on_items(value, depth)
        elif isinstance(value, BaseModel):
            self.spend([*vars(value).values()], depth, value)
            if value.__pydantic_extra__:
                self._spend_on_items(value.__pydantic_extra__, depth)
        elif isinstance(value, msgspec.Struct):
            self.spend([getattr(value, name) for name in value.__struct_fields__], depth, None)
        elif dataclasses.is_dataclass(value):
            self.spend([getattr(value, field.name, None) for field in dataclasses.fields(value)], depth, None)
        elif isinstance(value, str | bytes | bytearray):
            self._left -= len(value)
        elif isinstance(value, Iterator):
            _replace(owner, value, self._take(value, depth))
        elif isinstance(value, Mapping | Sequence | Set):
            self._spend_on_items(value, depth)

    def _spend_on_items(self, items: Any, depth: int) -> None:
        is_mapping = isinstance(items, dict | Mapping)
        self._left -= len(items) * (4 if is_mapping else 1)
        if self._left >= 0:
            self.spend(items, depth, None if is_mapping else items)
            if is_mapping:
                self.spend(tuple(items.values()), depth, items)

    def _take(self, iterator: Iterator[Any], depth: int) -> list[Any]:
        """Collect the items of an iterator."""
        items: list[Any] = []
        for item in iterator:
            self._left -= _LEAST_ITEM
            items.append(item)
            self.spend(items[-1:], depth, items)
        return items


_SCALARS: Final = frozenset({int, float, bool, types.NoneType})


def has_fixed_size(kind: Any) -> bool:
    """Tell whether all values of a type are small: numbers and the like, and models of nothing else."""
    small = tuple(_SCALARS)  # where types that cannot be hashed can be looked for
    if not isinstance(kind, type) or not issubclass(kind, BaseModel):
        return kind in small
    return kind.model_config.get("extra") != "allow" and all(
        field.annotation in small for field in kind.model_fields.values()
    )


def _text_size(text: str, max_bytes: int) -> int:
    """Return the size of a text in JSON, or that of its beginning if that exceeds a limit."""
    if len(text) > max_bytes or (text.isascii() and text.isprintable()):
        return len(text)
    size = 0
    for start in range(0, len(text), _CHUNK):
        chunk = text[start : start + _CHUNK]
        try:
            size += len(encode(chunk)) - 2
        except UnicodeEncodeError:  # lone surrogates are refused later
            size += len(chunk)
        if size > max_bytes:
            break
    return size


def _replace(owner: Any, iterator: Iterator[Any], items: list[Any]) -> None:
    """Put the items of an iterator where it was."""
    fields = vars(owner) if isinstance(owner, BaseModel) else owner
    if not isinstance(fields, dict | list):
        raise TypeError("An iterator can be sent on its own, in a list or dict, or as a field of a model")
    for place, value in tuple(fields.items() if isinstance(fields, dict) else enumerate(fields)):
        if value is iterator:
            fields[place] = iter(items) if isinstance(owner, BaseModel) else items  # the fields of a model are typed


WriteOutput: TypeAlias = Callable[[Any], bytes]
"""Writes an output as plain bytes; raises whatever sending the output would raise."""


class _Structured(msgspec.Struct, tag="structured", array_like=True):
    body: bytes


class _Whole(msgspec.Struct, tag="whole", array_like=True):
    content: bytes
    structured: bytes | None
    is_error: bool
    meta: bytes | None


class _Embedded(msgspec.Struct, tag_field="type", tag="resource"):
    """An embedded resource; only its fields tell text from binary data."""

    resource: msgspec.Raw
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")

    def block(self) -> EmbeddedResource:
        return EmbeddedResource(_read_resource(self.resource), self.annotations, self.meta)


_Block: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | _Embedded

_read_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_text: Final = msgspec.json.Decoder(TextResource).decode
_read_blob: Final = msgspec.json.Decoder(BlobResource).decode
_read_blocks: Final = msgspec.json.Decoder(tuple[_Block, ...]).decode
_read_resources: Final = msgspec.json.Decoder(tuple[msgspec.Raw, ...]).decode
_write: Final = msgspec.msgpack.Encoder().encode
_read: Final = msgspec.msgpack.Decoder(_Structured | _Whole).decode


def output_writer(output_model: Any, adapter: Callable[[], TypeAdapter[Any]]) -> WriteOutput:
    """Compile the function that writes the outputs of a tool."""
    if not is_structured(output_model):
        return lambda output: _write(_whole(result_of(output)))
    declared, found = output_model, adapter()
    check, to_json = found.validator.validate_python, json_writer(found)

    def write(output: Any) -> bytes:
        if isinstance(output, ToolResult) and type(output) is not declared:
            return _write(_whole(output))
        checked = output if type(output) is declared else check(output)
        return _write(_Structured(to_json(checked)))

    return write


def read_output(data: bytes) -> ToolResult:
    """Return the result of an output that was written, or raise ValueError if the bytes are not an output."""
    written = _read(data)
    if isinstance(written, _Structured):
        return ToolResult((TextContent(written.body.decode()),), from_json(written.body))
    structured = UNSET if written.structured is None else from_json(written.structured)
    meta = None if written.meta is None else from_json(written.meta)
    return ToolResult(read_blocks(written.content), structured, written.is_error, meta)


def read_blocks(content: bytes) -> tuple[ContentBlock, ...]:
    """Decode content blocks."""
    return tuple(block.block() if isinstance(block, _Embedded) else block for block in _read_blocks(content))


def read_contents(contents: bytes) -> tuple[TextResource | BlobResource, ...]:
    """Decode the contents of a resource."""
    return tuple(map(_read_resource, _read_resources(contents)))


def _read_resource(resource: msgspec.Raw) -> TextResource | BlobResource:
    return _read_blob(resource) if "blob" in _read_fields(resource) else _read_text(resource)


def _whole(result: ToolResult) -> _Whole:
    structured = None if result.structured is UNSET else json_text(result.structured)
    meta = None if result.meta is None else encode(result.meta)
    return _Whole(encode(list(result.content)), structured, result.is_error, meta)


def result_of(output: Any) -> ToolResult:
    """Return the whole result of an output that has no schema, as it is sent."""
    if isinstance(output, ToolResult):
        return output
    if isinstance(output, str):
        return ToolResult((TextContent(output),))
    if output is None:
        return ToolResult()
    if isinstance(output, BLOCKS):
        return ToolResult((output,))
    if isinstance(output, Sequence) and all(isinstance(item, BLOCKS) for item in output):
        return ToolResult(output)
    text = json_text(output).decode()
    return ToolResult((TextContent(text),), output if isinstance(output, Mapping | BaseModel) else UNSET)
