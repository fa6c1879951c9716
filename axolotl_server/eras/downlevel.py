"""What a peer of an older revision gets instead of content that it does not know."""

import msgspec

from axolotl_core.content import (
    Annotations,
    AudioContent,
    BlobResource,
    ContentBlock,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResource,
)
from axolotl_core.output import BLOCKS
from axolotl_core.protocol.versions import Revision

__all__ = ["annotations_for", "content_for", "contents_for"]


def content_for(block: ContentBlock, revision: Revision) -> ContentBlock:
    """Give the form of a content block that a peer of this revision understands.

    Raises:
        TypeError: if a tool gave something else for a block.
    """
    if not isinstance(block, BLOCKS):
        raise TypeError(f"{type(block).__name__} is no content block")
    if revision.icons:
        return block
    if isinstance(block, AudioContent) and not revision.audio:
        resource = BlobResource(f"audio:{block.mime_type}", block.data, block.mime_type)
        return content_for(EmbeddedResource(resource, block.annotations), revision)
    if isinstance(block, ResourceLink) and not revision.resource_links:
        return TextContent(f"{block.title or block.name}: {block.uri}", annotations_for(block.annotations, revision))
    if isinstance(block, ResourceLink):
        return msgspec.structs.replace(block, icons=None)
    if revision.titles:
        return block
    return _without_meta(block, revision)


def _without_meta(block: ContentBlock, revision: Revision) -> ContentBlock:
    plain = msgspec.structs.replace(block, meta=None, annotations=annotations_for(block.annotations, revision))
    if isinstance(plain, EmbeddedResource):
        return msgspec.structs.replace(plain, resource=contents_for(plain.resource, revision))
    return plain


def contents_for(contents: TextResource | BlobResource, revision: Revision) -> TextResource | BlobResource:
    """Give the form of a resource's contents that a peer of this revision understands."""
    return contents if revision.titles else msgspec.structs.replace(contents, meta=None)


def annotations_for(annotations: Annotations | None, revision: Revision) -> Annotations | None:
    """Give the annotations that a peer of this revision understands."""
    if annotations is None or revision.titles:
        return annotations
    return msgspec.structs.replace(annotations, last_modified=None)
