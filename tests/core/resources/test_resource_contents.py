"""Outputs of resources: text, bytes, JSON and contents with their own URIs."""

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, Field

from axolotl_core import Context, IResource
from axolotl_core.content import BlobResource, TextContent, TextResource
from axolotl_core.resources.resource import contents_of
from tests.support.core.feature_calls import URI, run

APP = "text/html;profile=mcp-app"


class Section(Enum):
    NEWS = "news"


class Fixed(IResource):
    """A resource that returns a fixed output."""

    name = "fixed"
    uri = "test://fixed"

    def __init__(self, output: Any, mime_type: str | None = None) -> None:
        self.output = output
        self.mime_type = mime_type

    async def read(self, context: Context) -> Any:
        return self.output


class Totals(BaseModel):
    day: date = date(2024, 1, 1)
    sum: int = Field(3, serialization_alias="total")


@dataclass
class Pair:
    a: int = 1


HERE, THERE = TextResource("a://here", "x"), BlobResource("a://there", b"y", "image/png")


@pytest.mark.parametrize(
    ("output", "text", "mime_type"),
    [
        pytest.param("plain", "plain", "text/plain", id="text"),
        pytest.param("", "", "text/plain", id="empty-text"),
        pytest.param(Section.NEWS, '"news"', "application/json", id="enum"),
        pytest.param({"a": [1, None]}, '{"a":[1,null]}', "application/json", id="dict"),
        pytest.param([1, "a"], '[1,"a"]', "application/json", id="list"),
        pytest.param([], "[]", "application/json", id="empty-list"),
        pytest.param((), "[]", "application/json", id="empty-tuple"),
        pytest.param(None, "null", "application/json", id="none"),
        pytest.param(True, "true", "application/json", id="bool"),
        pytest.param(1.5, "1.5", "application/json", id="number"),
        pytest.param(Totals(), '{"day":"2024-01-01","total":3}', "application/json", id="model"),
        pytest.param([Totals()], '[{"day":"2024-01-01","total":3}]', "application/json", id="models"),
        pytest.param(Pair(), '{"a":1}', "application/json", id="dataclass"),
    ],
)
async def test_text_and_json_become_text(output: Any, text: str, mime_type: str) -> None:
    """Text stays unchanged, other values become JSON; the URI is the requested one."""
    assert await run(Fixed(output)) == (TextResource(URI, text, mime_type),)
    assert await run(Fixed(output, "text/x-own")) == (TextResource(URI, text, "text/x-own"),)


@pytest.mark.parametrize(
    "output", [b"\x00\xff", bytearray(b"\x00\xff"), memoryview(b"\x00\xff"), memoryview(b"\x00-\xff-")[::2]]
)
async def test_bytes_become_a_blob(output: Any) -> None:
    """All binary types become blobs."""
    assert await run(Fixed(output)) == (BlobResource(URI, b"\x00\xff", "application/octet-stream"),)
    assert await run(Fixed(output, "image/png")) == (BlobResource(URI, b"\x00\xff", "image/png"),)


@pytest.mark.parametrize("output", [HERE, THERE, [HERE, THERE], (THERE,)])
async def test_contents_with_their_own_uri_stay_as_they_are(output: Any) -> None:
    """A resource can return several contents, each with its own URI and MIME type."""
    expected = tuple(output) if isinstance(output, list | tuple) else (output,)
    assert await run(Fixed(output, "text/x-own")) == expected


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(object(), id="object"),
        pytest.param([HERE, "text"], id="mixed"),
        pytest.param(TextContent("x"), id="content-block"),
        pytest.param({"a": b"\xff"}, id="bytes-inside"),
    ],
)
def test_values_that_json_lacks_are_refused(output: Any) -> None:
    """The error is raised before anything reaches a client."""
    with pytest.raises(ValueError, match="serializ"):
        contents_of(output, URI, None)


@pytest.mark.parametrize(
    ("output", "mime_type"), [("<p>", APP), (b"<p>", APP), ({"a": 1}, APP)], ids=["text", "bytes", "json"]
)
def test_a_page_of_an_app_is_marked_as_one(output: Any, mime_type: str) -> None:
    """Resources of ui:// have the MIME type of MCP Apps."""
    [contents] = contents_of(output, "ui://page", None)
    assert contents.mime_type == mime_type
