"""A tool as the server runs it: its description and its effective limits, fixed when it is bound."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axolotl_core.errors import ConfigurationError
from axolotl_core.header_parameters import HeaderParameter, header_parameters
from axolotl_core.schema import JsonSchema

if TYPE_CHECKING:
    from axolotl_core.tool import Execution, ITool

__all__ = ["ToolLimits", "ToolSpec"]


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """What holds for one tool after settings, tool attributes and defaults were weighed."""

    timeout_seconds: float
    max_concurrency: int | None
    execution: "Execution"
    coerce_arguments: bool


@dataclass(frozen=True, slots=True, eq=False)
class ToolSpec:
    """A tool, the schemas it publishes and the limits that hold for it."""

    tool: "ITool[Any, Any]"
    name: str
    limits: ToolLimits
    input_schema: JsonSchema
    output_schema: JsonSchema | None
    header_parameters: tuple[HeaderParameter, ...]

    @classmethod
    def of(cls, tool: "ITool[Any, Any]", limits: ToolLimits) -> "ToolSpec":
        """Describe `tool`.

        Raises:
            ConfigurationError: if a schema cannot be made or names an impossible header.
        """
        input_schema = tool.input_schema
        if input_schema.get("type") != "object":
            raise ConfigurationError(f'Tool {tool.name!r}: the root of an input schema must have "type": "object"')
        headers = header_parameters(tool.name, input_schema)
        return cls(tool, tool.name, limits, input_schema, tool.output_schema, headers)
