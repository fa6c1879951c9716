"""The shape of results that a client relies on, checked where the server is not in this process."""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from axolotl_server.client.channel import InvalidReply


class _Block(msgspec.Struct):
    type: str
    text: str | None = None
    resource: dict[str, Any] | None = None


class _ToolResult(msgspec.Struct):
    content: list[_Block]
    isError: bool = False


class _PromptMessage(msgspec.Struct):
    role: str
    content: _Block


class _Prompt(msgspec.Struct):
    messages: list[_PromptMessage]
    description: str | None = None


class _ResourceContent(msgspec.Struct):
    uri: str
    text: str | None = None
    blob: str | None = None
    mimeType: str | None = None


class _Resource(msgspec.Struct):
    contents: list[_ResourceContent]
    ttlMs: float = 0
    cacheScope: str = "private"


class _Named(msgspec.Struct):
    name: str
    title: str | None = None
    description: str | None = None
    mimeType: str | None = None


class _Tool(_Named):
    inputSchema: dict[str, Any] = {}
    outputSchema: dict[str, Any] | bool | None = None


class _Argument(_Named):
    required: bool = False


class _PromptEntry(_Named):
    arguments: list[_Argument] | None = None


class _ResourceEntry(_Named, kw_only=True):
    uri: str
    size: int | None = None


class _TemplateEntry(_Named, kw_only=True):
    uriTemplate: str


class _Tools(msgspec.Struct):
    tools: list[_Tool]
    nextCursor: str | None = None


class _Prompts(msgspec.Struct):
    prompts: list[_PromptEntry]
    nextCursor: str | None = None


class _Resources(msgspec.Struct):
    resources: list[_ResourceEntry]
    nextCursor: str | None = None


class _Templates(msgspec.Struct):
    resourceTemplates: list[_TemplateEntry]
    nextCursor: str | None = None


class _Values(msgspec.Struct):
    values: list[str]
    total: int | None = None
    hasMore: bool | None = None


class _Completions(msgspec.Struct):
    completion: _Values


_SHAPES: Final = {
    "tools/call": _ToolResult,
    "prompts/get": _Prompt,
    "resources/read": _Resource,
    "tools/list": _Tools,
    "prompts/list": _Prompts,
    "resources/list": _Resources,
    "resources/templates/list": _Templates,
    "completion/complete": _Completions,
}


def check_result(method: str, result: Mapping[str, Any]) -> None:
    """Check a final result; raises InvalidReply if it does not have the shape that the protocol prescribes."""
    shape = _SHAPES.get(method)
    is_final = result.get("resultType", "complete") == "complete" and "task" not in result
    if shape is None or not is_final:
        return
    try:
        found = msgspec.convert(result, shape)
        for content in found.contents if isinstance(found, _Resource) else ():
            b64decode(content.blob or "")
    except binascii.Error as error:
        raise InvalidReply(
            f"The result of {method} does not follow the protocol: a blob is not base64: {error}"
        ) from None
    except msgspec.ValidationError as error:
        raise InvalidReply(f"The result of {method} does not follow the protocol: {error}") from None
