"""Stored results: replayed replies equal the original ones."""

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel, Field, computed_field, field_serializer

from axolotl_core import Context, ITool, NoArguments, ToolError
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
from axolotl_core.errors import Refused
from axolotl_core.output import WriteOutput, output_writer
from axolotl_core.protocol.identity import Icon
from axolotl_server import connect
from axolotl_server.layers.idempotency.stored_results import read_record, too_large, write_failure, write_record
from tests.support.core.json_values import JSON
from tests.support.tools import container_of


class Awkward(BaseModel):
    """A model that cannot be parsed from its own output."""

    total: Decimal = Field(serialization_alias="sum", validation_alias="amount")
    secret: str = Field("swordfish", exclude=True)
    day: date

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> Decimal:
        return 2 * self.total

    @field_serializer("day")
    def _written(self, day: date) -> str:
        return f"{day:%d. %m. %Y}"


@dataclass
class Point:
    x: float
    y: float


BLOCKS = (
    TextContent("ü", Annotations(audience=("user",), priority=0.5), {"a": 1}),
    ImageContent(b"\x00\xff", "image/png"),
    AudioContent(b"\x01", "audio/wav"),
    EmbeddedResource(TextResource("file:///a", "blob", "text/plain", {"b": 2})),
    EmbeddedResource(BlobResource("file:///b", b"\xfe"), Annotations(last_modified="2026-01-31")),
    ResourceLink("file:///c", "c", size=3, icons=(Icon("https://example.com/i.png"),)),
)

OUTPUTS: list[tuple[Any, Any]] = [
    (str, "text"),
    (None, None),
    (list[ImageContent], [BLOCKS[1]]),
    (ToolResult, ToolResult(BLOCKS, {"a": [1, None]}, meta={"m": "n"})),
    (ToolResult, ToolResult(structured=None)),
    (ToolResult, ToolResult((), Point(1, 2), is_error=True)),
    (int, 5),
    (list[int], [1, 2]),
    (dict[str, float], {"a": 1e22, "b": 0.1}),
    (Awkward, Awkward.model_validate({"amount": "1.50", "day": "2026-01-31"})),
    (Point, Point(1.5, 2)),
    (int, ToolResult((TextContent("five"),), 5)),
    (Any, Point(1, 2)),
    (Any, {"a": 2**70}),
    (Any, [1, "a"]),
    (Any, BLOCKS[0]),
    (Any, Awkward.model_validate({"amount": "1.50", "day": "2026-01-31"})),
]


class Given(ITool[NoArguments, Any]):
    """Returns one output, which later calls get from the store."""

    name = "given"

    def __init__(self, declared: Any, output: Any) -> None:
        self.output_model = declared  # type: ignore[misc]
        self.output = output

    async def execute(self, arguments: NoArguments, context: Context) -> Any:
        return self.output


def writer_for(declared: Any) -> WriteOutput:
    return output_writer(declared, lambda: Given(declared, None).output_adapter)


@pytest.mark.parametrize(("declared", "output"), OUTPUTS, ids=[f"{n}" for n in range(len(OUTPUTS))])
async def test_the_answer_is_the_same(declared: Any, output: Any) -> None:
    """In both eras, a replayed reply equals the original one, except for the mark."""
    tool = Given(declared, output)
    record = write_record(writer_for(declared)(output), "others")
    async with connect(container_of(tool)) as client:
        params = {"name": "given", "arguments": {}}
        first = await client.request("tools/call", params)
        tool.output = read_record(record, "others")
        second = await client.request("tools/call", params)
    assert second["_meta"].pop("axolotl/replayed") is True
    assert json.dumps(second, sort_keys=True) == json.dumps(first, sort_keys=True)


@given(JSON)
def test_any_json_comes_back(value: Any) -> None:
    """Structured content has the same value after storing."""
    result = read_record(write_record(writer_for(Any)(ToolResult((), value)), ""), "")
    assert result.structured == value


def test_an_output_that_breaks_its_promise() -> None:
    """An output that cannot be sent cannot be stored."""
    with pytest.raises(ValueError, match="valid integer"):
        writer_for(int)("five")


def test_failures() -> None:
    """A stored failure has the same message and data."""
    with pytest.raises(ToolError, match="no such card") as raised:
        read_record(write_failure(ToolError("no such card", meta={"code": 7}), ""), "")
    assert raised.value.meta == {"code": 7, "axolotl/replayed": True}


@pytest.mark.parametrize("record", [write_failure(ToolError("x"), "a"), too_large(5, "a")])
def test_other_arguments(record: bytes) -> None:
    """A stored result is used only for equal arguments."""
    with pytest.raises(Refused, match="different arguments"):
        read_record(record, "b")


def test_a_result_that_was_too_large() -> None:
    """If a result was too large to be stored, the error says that the call ran."""
    with pytest.raises(Refused, match="was made before"):
        read_record(too_large(5_000_000, ""), "")
