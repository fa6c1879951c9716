"""Content blocks, `ToolResult`, links to MCP Apps, and detection of structured output types."""

import types
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec import UNSET

from axolotl_core.protocol.identity import Icon

APP_EXTENSION: Final = "io.modelcontextprotocol/ui"
APP_MIME_TYPE: Final = "text/html;profile=mcp-app"
APP_SCHEME: Final = "ui://"


class AppLink(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The `ui://` resource of a tool, and who may call the tool: the model, the app, or both."""

    resource_uri: str
    visibility: tuple[Literal["model", "app"], ...] | None = None


def app_link(app: str | AppLink | None) -> AppLink | None:
    """Turn the URI of an app into a link."""
    return AppLink(app) if isinstance(app, str) else app


class Annotations(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The audience of a content block and its priority (0 to 1)."""

    audience: tuple[Literal["user", "assistant"], ...] | None = None
    priority: float | None = None
    last_modified: str | None = None


class TextContent(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="text"):
    """Plain text."""

    text: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class ImageContent(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="image"):
    """An image, as bytes."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class AudioContent(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="audio"):
    """Audio data, as bytes."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class TextResource(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The contents of a text resource."""

    uri: str
    text: str
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class BlobResource(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The contents of a binary resource."""

    uri: str
    blob: bytes
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class EmbeddedResource(
    msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="resource"
):
    """A resource embedded in the result."""

    resource: TextResource | BlobResource
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class ResourceLink(
    msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="resource_link"
):
    """A link to a resource that the client can read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: tuple[Icon, ...] | None = None
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink


class ToolResult(msgspec.Struct, frozen=True):
    """A complete result, for tools that control every part of it."""

    content: Sequence[ContentBlock] = ()
    structured: Any = UNSET
    """A JSON value or a pydantic model. `UNSET` leaves it out; `None` is a JSON null."""
    is_error: bool = False
    meta: Mapping[str, Any] | None = None


BLOCKS = (TextContent, ImageContent, AudioContent, EmbeddedResource, ResourceLink)
_UNSTRUCTURED = (*BLOCKS, ToolResult, str, type(None), None, Any, object)


def is_structured(output: Any) -> bool:
    """Whether values of this type become structured content: all do except strings, None and content blocks."""
    if get_origin(output) in (Union, types.UnionType):
        return any(map(is_structured, get_args(output)))
    if get_origin(output) in (list, tuple, Sequence):
        return not all(argument is Ellipsis or _is_block(argument) for argument in get_args(output))
    return output not in _UNSTRUCTURED


def _is_block(candidate: Any) -> bool:
    if get_origin(candidate) in (Union, types.UnionType):
        return all(_is_block(argument) for argument in get_args(candidate))
    return candidate in BLOCKS
