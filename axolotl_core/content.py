"""What a tool can answer: content blocks, and a result with full control."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from axolotl_core.protocol.identity import Icon

__all__ = [
    "Annotations",
    "AudioContent",
    "BlobResource",
    "ContentBlock",
    "EmbeddedResource",
    "ImageContent",
    "ResourceLink",
    "TextContent",
    "TextResource",
    "ToolResult",
]


class Annotations(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """For whom a piece of content is, and how much it matters (0 to 1)."""

    audience: tuple[Literal["user", "assistant"], ...] | None = None
    priority: float | None = None
    last_modified: str | None = None


class TextContent(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="text"):
    """Plain text."""

    text: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class ImageContent(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="image"):
    """A picture, given as its bytes."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class AudioContent(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="audio"):
    """A sound, given as its bytes."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class TextResource(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The text of a resource."""

    uri: str
    text: str
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class BlobResource(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The bytes of a resource."""

    uri: str
    blob: bytes
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class EmbeddedResource(
    msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="resource"
):
    """A resource, carried inside the answer."""

    resource: TextResource | BlobResource
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = msgspec.field(default=None, name="_meta")


class ResourceLink(
    msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag="resource_link"
):
    """A resource that the client may read if it wants it."""

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
    """A whole answer, for tools that decide about every part of it."""

    content: Sequence[ContentBlock] = ()
    structured: Any = UNSET
    """Any JSON value, or a pydantic model; `UNSET` leaves it out, `None` is a JSON null."""
    is_error: bool = False
    meta: Mapping[str, Any] | None = None
