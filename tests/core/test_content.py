"""Content blocks: their JSON, without unset fields."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from axolotl_core import ToolAnnotations
from axolotl_core.content import (
    Annotations,
    AudioContent,
    BlobResource,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResource,
    ToolResult,
)
from axolotl_core.protocol.identity import Icon, Implementation
from axolotl_core.protocol.wire import encode

ANNOTATIONS = Annotations(audience=("user", "assistant"), priority=0.5, last_modified="2025-01-12T15:00:58Z")
ANNOTATIONS_JSON = {"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"}
META = {"example.com/x": 1}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        pytest.param(TextContent("hi"), {"type": "text", "text": "hi"}, id="text"),
        pytest.param(TextContent(""), {"type": "text", "text": ""}, id="empty-text"),
        pytest.param(
            TextContent("hi", ANNOTATIONS, META),
            {"type": "text", "text": "hi", "annotations": ANNOTATIONS_JSON, "_meta": META},
            id="text-with-everything",
        ),
        pytest.param(
            ImageContent(b"\x00\xff", "image/png"),
            {"type": "image", "data": "AP8=", "mimeType": "image/png"},
            id="image",
        ),
        pytest.param(
            AudioContent(b"\xfb\xff", "audio/wav", ANNOTATIONS, META),
            {"type": "audio", "data": "+/8=", "mimeType": "audio/wav", "annotations": ANNOTATIONS_JSON, "_meta": META},
            id="audio-in-standard-base64",
        ),
        pytest.param(
            EmbeddedResource(TextResource("file:///a", "text", "text/plain")),
            {"type": "resource", "resource": {"uri": "file:///a", "text": "text", "mimeType": "text/plain"}},
            id="embedded-text",
        ),
        pytest.param(
            EmbeddedResource(BlobResource("file:///b", b"\x01", meta=META), meta=META),
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "AQ==", "_meta": META}, "_meta": META},
            id="embedded-bytes",
        ),
        pytest.param(
            ResourceLink("file:///c", "c"), {"type": "resource_link", "uri": "file:///c", "name": "c"}, id="link"
        ),
        pytest.param(
            ResourceLink("u", "n", "T", "D", "text/plain", 3, (Icon("https://e.com/i"),), ANNOTATIONS, META),
            {
                "type": "resource_link",
                "uri": "u",
                "name": "n",
                "title": "T",
                "description": "D",
                "mimeType": "text/plain",
                "size": 3,
                "icons": [{"src": "https://e.com/i"}],
                "annotations": ANNOTATIONS_JSON,
                "_meta": META,
            },
            id="link-with-everything",
        ),
        pytest.param(Annotations(priority=0.0), {"priority": 0.0}, id="lowest-priority-is-not-left-out"),
        pytest.param(
            Icon("data:,x", "image/png", ("48x48", "any"), "dark"),
            {"src": "data:,x", "mimeType": "image/png", "sizes": ["48x48", "any"], "theme": "dark"},
            id="icon",
        ),
        pytest.param(
            Implementation("n", "1", website_url="https://e.com"),
            {"name": "n", "version": "1", "websiteUrl": "https://e.com"},
            id="implementation",
        ),
        pytest.param(ToolAnnotations(), {}, id="no-hints"),
        pytest.param(
            ToolAnnotations("T", read_only=True, destructive=False, idempotent=True, open_world=False),
            {
                "title": "T",
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
            id="hints",
        ),
    ],
)
def test_a_block_has_the_form_of_the_protocol(block: Any, expected: dict[str, Any]) -> None:
    """Names follow the protocol, bytes are base64, and unset fields are left out."""
    assert msgspec.json.decode(encode(block)) == expected


def test_a_result_without_structure_differs_from_a_null() -> None:
    """There is no structured content by default; `None` is a JSON null."""
    assert ToolResult().structured is UNSET
    assert ToolResult(structured=None).structured is None


def test_blocks_are_values() -> None:
    """Blocks of equal content are equal and cannot be altered."""
    block = TextContent("a")
    assert block == TextContent("a") != TextContent("b")
    with pytest.raises(AttributeError):
        block.text = "b"  # type: ignore[misc]
