"""The tools that a client's model may want to use while it answers."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from pydantic import BaseModel

from axolotl_core.schema import JsonSchema, schema_of

__all__ = ["ISamplingTool", "SamplingTool", "written_tools"]


class ISamplingTool(Protocol):
    """A tool as a model needs to know it; every `ITool` is one."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def title(self) -> str | None:
        """Its name for people."""
        ...

    @property
    def description(self) -> str:
        """What it does."""
        ...

    @property
    def input_schema(self) -> JsonSchema:
        """The JSON Schema of its arguments, an object."""
        ...


class SamplingTool(msgspec.Struct, frozen=True):
    """A tool for a model, described by hand; whoever asked the model runs it."""

    name: str
    input_schema: JsonSchema
    description: str = ""
    title: str | None = None

    @classmethod
    def of(cls, name: str, arguments: type[BaseModel], description: str = "") -> "SamplingTool":
        """Describe a tool by the model of its arguments."""
        return cls(name, schema_of(arguments, "validation"), description)


def written_tools(tools: Sequence[ISamplingTool]) -> list[Mapping[str, Any]]:
    """Write tools as the protocol describes them.

    Raises:
        ValueError: if two share a name, or one takes something else than an object.
    """
    names = [tool.name for tool in tools]
    if len(set(names)) != len(names):
        raise ValueError(f"Two tools have the same name: {names}")
    return [_written_tool(tool) for tool in tools]


def _written_tool(tool: ISamplingTool) -> Mapping[str, Any]:
    if tool.input_schema.get("type") != "object":
        raise ValueError(f'The input schema of the tool {tool.name!r} must have "type": "object"')
    written: dict[str, Any] = {"name": tool.name, "inputSchema": tool.input_schema}
    if tool.title is not None:
        written["title"] = tool.title
    if tool.description:
        written["description"] = tool.description
    return written
