"""Tools that return different kinds of content."""

from typing import Annotated, Any, Final

from pydantic import Field

from axolotl_core import ToolError, tool
from axolotl_core.content import AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent, TextResource
from axolotl_core.registry import AnyTool
from axolotl_core.tools.schema_tool import SchemaTool
from tests.conformance.media import red_pixel, silence

SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "address",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contact": {"enum": ["email", "phone"]},
        "email": {"type": "string"},
        "phone": {"type": "string"},
    },
    "additionalProperties": False,
    "allOf": [{"anyOf": [{"required": ["email"]}, {"required": ["phone"]}]}],
    "if": {"properties": {"contact": {"const": "phone"}}, "required": ["contact"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
}


@tool(name="test_simple_text")
async def simple_text() -> str:
    """Return text."""
    return "This is a simple text response for testing."


@tool(name="test_image_content")
async def image_content() -> ImageContent:
    """Return an image."""
    return ImageContent(red_pixel(), "image/png")


@tool(name="test_audio_content")
async def audio_content() -> AudioContent:
    """Return audio."""
    return AudioContent(silence(), "audio/wav")


@tool(name="test_embedded_resource")
async def embedded_resource() -> EmbeddedResource:
    """Return an embedded resource."""
    return EmbeddedResource(
        TextResource("test://embedded-resource", "This is an embedded resource content.", "text/plain")
    )


@tool(name="test_multiple_content_types")
async def multiple_content_types() -> list[ContentBlock]:
    """Return text, an image and a resource."""
    data = TextResource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return [
        TextContent("Multiple content types test:"),
        ImageContent(red_pixel(), "image/png"),
        EmbeddedResource(data),
    ]


@tool(name="test_error_handling")
async def error_handling() -> str:
    """Fail with a message for the model."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool(name="test_x_mcp_header")
async def mirrored_argument(
    region: Annotated[str, Field(description="Where.", json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    """Return an argument that clients repeat in a header."""
    return f"Region: {region}"


async def _describe(arguments: dict[str, Any]) -> str:
    return f"Arguments: {', '.join(sorted(arguments))}"


CONTENT_TOOLS: Final[tuple[AnyTool, ...]] = (
    simple_text,  # must be first: the suite calls the first tool without arguments
    image_content,
    audio_content,
    embedded_resource,
    multiple_content_types,
    error_handling,
    mirrored_argument,
    SchemaTool("json_schema_2020_12_tool", SCHEMA, _describe, description="Take what a rich schema admits."),
)
