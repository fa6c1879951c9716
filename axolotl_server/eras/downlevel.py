"""What a peer of an older revision gets instead of what it does not know."""

from typing import Any

import msgspec

from axolotl_core.content import (
    Annotations,
    AudioContent,
    BlobResource,
    ContentBlock,
    EmbeddedResource,
    ResourceLink,
    TextContent,
)
from axolotl_core.output import BLOCKS
from axolotl_core.protocol.versions import Revision
from axolotl_core.schema import JsonSchema, wrapped
from axolotl_core.spec import ToolSpec
from axolotl_core.tool import ToolAnnotations

__all__ = ["content_for", "definition_for"]


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
        return TextContent(f"{block.title or block.name}: {block.uri}", _annotations(block.annotations, revision))
    if isinstance(block, ResourceLink):
        return msgspec.structs.replace(block, icons=None)
    if revision.titles:
        return block
    return _without_meta(block, revision)


def _without_meta(block: ContentBlock, revision: Revision) -> ContentBlock:
    plain = msgspec.structs.replace(block, meta=None, annotations=_annotations(block.annotations, revision))
    if isinstance(plain, EmbeddedResource):
        return msgspec.structs.replace(plain, resource=msgspec.structs.replace(plain.resource, meta=None))
    return plain


def _annotations(annotations: Annotations | None, revision: Revision) -> Annotations | None:
    if annotations is None or revision.titles:
        return annotations
    return msgspec.structs.replace(annotations, last_modified=None)


def definition_for(spec: ToolSpec, revision: Revision) -> dict[str, Any]:
    """Describe a tool as `tools/list` shows it to a peer of this revision."""
    tool = spec.tool
    definition: dict[str, Any] = {"name": spec.name, "description": tool.description, "inputSchema": spec.input_schema}
    if revision.titles and tool.title is not None:
        definition["title"] = tool.title
    if revision.structured_output and spec.output_schema is not None:
        definition["outputSchema"] = _output_schema(spec.output_schema, revision)
    annotations = _tool_annotations(tool.annotations, tool.title, revision)
    if annotations != ToolAnnotations():
        definition["annotations"] = annotations
    if revision.icons and tool.icons:
        definition["icons"] = tool.icons
    if revision.titles and tool.meta:
        definition["_meta"] = tool.meta
    return definition


def _output_schema(schema: JsonSchema, revision: Revision) -> JsonSchema:
    return schema if revision.any_structured_root or schema.get("type") == "object" else wrapped(schema)


def _tool_annotations(annotations: ToolAnnotations, title: str | None, revision: Revision) -> ToolAnnotations:
    if not revision.tool_annotations:
        return ToolAnnotations()
    if not revision.titles and annotations.title is None:
        return msgspec.structs.replace(annotations, title=title)
    return annotations
