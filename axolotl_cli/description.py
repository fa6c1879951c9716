"""A tool as the commands show it: what it is, and what holds for it after everything was weighed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from axolotl_core.layer import ILayer
from axolotl_core.schema import JsonSchema
from axolotl_core.spec import Limits
from axolotl_server.binding import ToolBinding
from axolotl_server.host import ServerHost

__all__ = ["ToolDescription", "describe_tools"]


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """One tool of a started server."""

    name: str
    title: str | None
    description: str
    toolset: str | None
    limits: Limits
    layers: tuple[str, ...]
    input_schema: JsonSchema
    output_schema: JsonSchema | None

    @property
    def headline(self) -> str:
        """The first sentence of the description, else the title."""
        first = next(iter(self.description.strip().splitlines()), "")
        sentence, stop, _ = first.partition(". ")
        return sentence + stop.strip() or self.title or ""


def describe_tools(host: ServerHost) -> list[ToolDescription]:
    """Describe everything that can be called, in its order."""
    toolsets = {id(tool): toolset.name for toolset in host.roles.toolsets for tool in toolset.items}
    return [_describe(binding, toolsets) for binding in host.catalogue.bindings()]


def _describe(binding: ToolBinding, toolsets: Mapping[int, str | None]) -> ToolDescription:
    spec = binding.spec
    return ToolDescription(
        spec.name,
        spec.tool.title,
        spec.tool.description,
        toolsets.get(id(spec.tool)),
        spec.limits,
        tuple(map(_name_of, binding.layers)),
        spec.input_schema,
        spec.output_schema,
    )


def _name_of(layer: ILayer) -> str:
    kind: Any = type(layer)
    return f"{kind.__module__}.{kind.__qualname__}"
