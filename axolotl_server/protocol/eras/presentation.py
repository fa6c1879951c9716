"""The form that content, tools, prompts and resources have in each revision."""

from typing import Any

import msgspec

from axolotl_core.arguments import property_of
from axolotl_core.content import (
    APP_MIME_TYPE,
    APP_SCHEME,
    BLOCKS,
    Annotations,
    AudioContent,
    BlobResource,
    ContentBlock,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResource,
    app_link,
)
from axolotl_core.features.feature import IFeature
from axolotl_core.features.spec import ToolSpec
from axolotl_core.protocol.versions import Revision
from axolotl_core.registry import AnyPrompt, AnyResource
from axolotl_core.resources.resource import IResource
from axolotl_core.schema import JsonSchema, wrapped
from axolotl_core.tools.tool import ToolAnnotations


def content_for(block: ContentBlock, revision: Revision) -> ContentBlock:
    """Return a content block in the form of a revision, or raise TypeError if it is not a content block."""
    if not isinstance(block, BLOCKS):
        raise TypeError(f"{type(block).__name__} is not a content block")
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
    """Return the contents of a resource in the form of a revision."""
    return contents if revision.titles else msgspec.structs.replace(contents, meta=None)


def annotations_for(annotations: Annotations | None, revision: Revision) -> Annotations | None:
    """Return annotations in the form of a revision."""
    if annotations is None or revision.titles:
        return annotations
    return msgspec.structs.replace(annotations, last_modified=None)


def tool_definition(spec: ToolSpec, revision: Revision) -> dict[str, Any]:
    """Describe a tool."""
    tool = spec.tool
    definition: dict[str, Any] = {"name": spec.name, "description": tool.description, "inputSchema": spec.input_schema}
    if revision.structured_output and spec.output_schema is not None:
        is_allowed = revision.any_structured_root or spec.output_schema.get("type") == "object"
        definition["outputSchema"] = spec.output_schema if is_allowed else wrapped(spec.output_schema)
    if revision.tasks and tool.task_support not in ("forbidden", "detached"):
        definition["execution"] = {"taskSupport": tool.task_support}
    annotations = _tool_annotations(tool.annotations, tool.title, revision)
    if annotations != ToolAnnotations():
        definition["annotations"] = annotations
    app = app_link(tool.app)
    return _decorated(definition, tool, revision, {} if app is None else {"ui": app})


def prompt_definition(prompt: AnyPrompt, revision: Revision) -> dict[str, Any]:
    """Describe a prompt and its arguments."""
    definition: dict[str, Any] = {"name": prompt.name}
    if prompt.description:
        definition["description"] = prompt.description
    schema = prompt.arguments_schema
    arguments = [_argument(name, schema, revision) for name in schema.get("properties", {})]
    if arguments:
        definition["arguments"] = arguments
    return _decorated(definition, prompt, revision)


def resource_definition(resource: AnyResource, revision: Revision) -> dict[str, Any]:
    """Describe a resource or a resource template."""
    definition: dict[str, Any] = {"name": resource.name}
    if isinstance(resource, IResource):
        definition["uri"] = resource.uri
    else:
        definition["uriTemplate"] = resource.uri_template
    uri = definition.get("uri", definition.get("uriTemplate", ""))
    mime_type = resource.mime_type or (APP_MIME_TYPE if uri.startswith(APP_SCHEME) else None)
    annotations = annotations_for(resource.annotations, revision)
    optional = {
        "description": resource.description or None,
        "mimeType": mime_type,
        "annotations": annotations,
        "size": getattr(resource, "size", None),
    }
    definition.update((name, value) for name, value in optional.items() if value is not None)
    return _decorated(definition, resource, revision)


def _decorated(
    definition: dict[str, Any], feature: IFeature, revision: Revision, extra: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Add the members that every kind of definition may have."""
    if revision.titles and feature.title is not None:
        definition["title"] = feature.title
    if revision.icons and feature.icons:
        definition["icons"] = feature.icons
    meta = {**(extra or {}), **feature.meta}
    if revision.titles and meta:
        definition["_meta"] = meta
    return definition


def _argument(name: str, schema: JsonSchema, revision: Revision) -> dict[str, Any]:
    described = property_of(schema, name)
    argument: dict[str, Any] = {"name": name}
    if revision.titles and "title" in described:
        argument["title"] = described["title"]
    if "description" in described:
        argument["description"] = described["description"]
    if name in schema.get("required", ()):
        argument["required"] = True
    return argument


def _tool_annotations(annotations: ToolAnnotations, title: str | None, revision: Revision) -> ToolAnnotations:
    if not revision.tool_annotations:
        return ToolAnnotations()
    if not revision.titles and annotations.title is None:
        return msgspec.structs.replace(annotations, title=title)
    return annotations
