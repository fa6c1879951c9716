"""From a tool's output to the bytes of a `tools/call` result, encoded once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET
from pydantic import BaseModel

from axolotl_core.content import ContentBlock, TextContent, ToolResult
from axolotl_core.output import BLOCKS, is_structured
from axolotl_core.protocol.wire import encode, json_text
from axolotl_core.spec import ToolSpec
from axolotl_server.eras.base import IEra
from axolotl_server.eras.downlevel import content_for
from axolotl_server.request import Request

__all__ = ["encode_anything", "encode_error", "result_encoder"]

_EncodeResult: TypeAlias = Callable[[Any, Request], bytes]


def result_encoder(spec: ToolSpec) -> _EncodeResult:
    """Compile what writes the outputs of a tool."""
    return _structured_encoder(spec) if is_structured(spec.tool.output_model) else encode_anything


def _structured_encoder(spec: ToolSpec) -> _EncodeResult:
    adapter = spec.tool.output_adapter
    declared = spec.tool.output_model
    check, write = adapter.validator.validate_python, adapter.serializer.to_json
    is_object = (spec.output_schema or {}).get("type") == "object"

    def encode_structured(output: Any, request: Request) -> bytes:
        if type(output) is not declared:
            if isinstance(output, ToolResult):
                return _encode_result(output, request.era, always_wraps=not is_object)
            output = check(output)
        body = write(output, by_alias=True)
        era = request.era
        revision = era.revision
        text = encode(body.decode())
        if not revision.structured_output:
            return b'{"content":[{"type":"text","text":%b}]%b' % (text, era.tail)
        if not is_object and not revision.any_structured_root:
            body = b'{"result":%b}' % body
        return b'{"content":[{"type":"text","text":%b}],"structuredContent":%b%b' % (text, body, era.tail)

    return encode_structured


def encode_anything(output: Any, request: Request) -> bytes:
    """Write an output by what it is: text, nothing, content blocks, a whole result, or any JSON value."""
    era = request.era
    if isinstance(output, str):
        return b'{"content":[{"type":"text","text":%b}]%b' % (_quoted(output), era.tail)
    if output is None:
        return b'{"content":[]%b' % era.tail
    if isinstance(output, ToolResult):
        return _encode_result(output, era)
    if isinstance(output, BLOCKS):
        return _encode_result(ToolResult((output,)), era)
    if isinstance(output, Sequence) and all(isinstance(item, BLOCKS) for item in output):
        return _encode_result(ToolResult(output), era)
    text = json_text(output)
    structured = output if isinstance(output, Mapping | BaseModel) else UNSET
    return _encode_result(ToolResult((TextContent(text.decode()),), structured), era)


def encode_error(message: str, meta: Mapping[str, Any] | None, era: IEra) -> bytes:
    """Write a failure for the model to read."""
    closing = era.tail if meta is None else era.closing(meta)
    return b'{"content":[{"type":"text","text":%b}],"isError":true%b' % (_quoted(message), closing)


def _encode_result(result: ToolResult, era: IEra, always_wraps: bool = False) -> bytes:
    """Write a result; where the schema of its tool was wrapped for a revision, every value is."""
    blocks: list[ContentBlock] = [content_for(block, era.revision) for block in result.content]
    parts = [b'{"content":', encode(blocks)]
    if result.structured is not UNSET and era.revision.structured_output:
        body = json_text(result.structured)
        if era.revision.any_structured_root or (body[:1] == b"{" and not always_wraps):
            parts += (b',"structuredContent":', body)
        else:
            parts += (b',"structuredContent":{"result":', body, b"}")
    if result.is_error:
        parts.append(b',"isError":true')
    parts.append(era.tail if result.meta is None else era.closing(result.meta))
    return b"".join(parts)


def _quoted(text: str) -> bytes:
    try:
        return encode(text)
    except UnicodeEncodeError:  # lone surrogates, as file names of other encodings have them
        return encode(text.encode("utf-8", "replace").decode())
