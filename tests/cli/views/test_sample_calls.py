"""Sample arguments and calls."""

import shlex
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from axolotl_cli.serving.banner import curl_command
from axolotl_cli.views.schemas import sample_arguments, sample_of
from axolotl_core import ToolAnnotations, tool
from axolotl_core.features.spec import Limits, ToolSpec
from axolotl_core.registry import AnyTool
from axolotl_core.tools.schema_tool import SchemaTool


class Tree(BaseModel):
    name: Literal["oak", "elm"]
    height: Annotated[float, Field(ge=2)]
    neighbour: "Tree | None" = None


@tool
async def plant(tree: Tree, rows: list[int], word: Annotated[str, Field(examples=["now"])], deep: bool = True) -> str:
    return ""


@tool
async def picky(code: Annotated[str, Field(pattern=r"^[A-Z]{3}-\d+$")]) -> str:
    return ""


@tool(annotations=ToolAnnotations(read_only=True))
async def look() -> str:
    return ""


@tool(annotations=ToolAnnotations(destructive=True))
async def burn() -> str:
    return ""


@tool(name="größe")
async def measure() -> str:
    return ""


def spec_of(sample: AnyTool) -> ToolSpec:
    return ToolSpec.of(sample, Limits(1.0, None, "loop", False))


def routed() -> SchemaTool:
    tenant = {"type": "string", "x-mcp-header": "Tenant"}
    schema = {"properties": {"tenant": tenant, "page": {"type": "integer"}}, "required": ["tenant"]}
    return SchemaTool("routed", schema, dict)


def words_of(*samples: Any) -> list[str]:
    return shlex.split(curl_command("http://127.0.0.1:1/mcp", [spec_of(sample) for sample in samples]))


def test_sample_arguments() -> None:
    """Minimal valid arguments are made from the schema."""
    expected = {"tree": {"name": "oak", "height": 2}, "rows": [1], "word": "now"}
    assert sample_arguments(spec_of(plant)) == expected


@pytest.mark.parametrize("kind", [date, datetime, UUID])
def test_formats(kind: type) -> None:
    """Strings of a known format have that format."""

    @tool
    async def at(moment: kind) -> str:  # type: ignore[valid-type]
        return ""

    assert sample_arguments(spec_of(at)) is not None


def test_sample_of_a_form() -> None:
    """A sample answer has the required fields, or all fields if none is required."""
    properties = {"a": {"type": "integer"}, "b": {"type": "string", "default": "x"}}
    assert sample_of({"type": "object", "properties": properties, "required": ["a"]}) == {"a": 1}
    assert sample_of({"type": "object", "properties": properties}) == {"a": 1, "b": "x"}


def test_no_sample() -> None:
    """If no valid arguments can be made, there is no sample."""
    assert sample_arguments(spec_of(picky)) is None


@pytest.mark.parametrize(
    ("samples", "chosen"),
    [
        pytest.param([plant, look], "look", id="prefer-read-only"),
        pytest.param([picky, plant], "plant", id="skip-the-unguessable"),
        pytest.param([burn, measure, plant], "plant", id="skip-the-destructive-and-the-unwritable"),
    ],
)
def test_choice(samples: list[Any], chosen: str) -> None:
    """The sample call uses a tool that is not destructive, with valid arguments."""
    assert f"Mcp-Name: {chosen}" in words_of(*samples)


@pytest.mark.parametrize("samples", [[], [burn], [picky]])
def test_list_instead(samples: list[Any]) -> None:
    """If no tool can be tried, the sample call lists the tools."""
    assert "Mcp-Method: tools/list" in words_of(*samples)


def test_mirrored_arguments() -> None:
    """Arguments that a header mirrors are sent in that header."""
    assert "mcp-param-tenant: hello" in words_of(routed())
