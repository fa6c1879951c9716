"""A feature as the server runs it: its description and its effective limits, fixed when it is bound."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from axolotl_core.errors import ConfigurationError
from axolotl_core.header_parameters import HeaderParameter, header_parameters
from axolotl_core.schema import JsonSchema

if TYPE_CHECKING:
    from axolotl_core.feature import Execution, IFeature, Kind
    from axolotl_core.tool import ITool

__all__ = ["FeatureSpec", "Limits", "ToolSpec"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds for one feature after settings, its own attributes and defaults were weighed."""

    timeout_seconds: float
    max_concurrency: int | None
    execution: "Execution"
    coerce_arguments: bool
    max_timeout_seconds: float | None = None
    """How far progress may move the deadline; None where it does not."""
    queue_limit: int = 0
    """How many calls may wait for a place."""
    queue_timeout_seconds: float = 1.0
    pool: str | None = None
    """The group whose worker threads, or whose processes, it shares; None for the server's threads, or processes that
    no other feature uses."""
    max_result_bytes: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSpec:
    """A tool, prompt or resource, as layers see it."""

    feature: "IFeature"
    kind: "Kind"
    name: str
    """The one name that limits, rules and records go by: of a resource its URI, or the template of it."""
    limits: Limits
    toolset: str | None
    """The tool set that it came with, None for what is outside any."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolSpec(FeatureSpec):
    """A tool, the schemas it publishes and the limits that hold for it."""

    input_schema: JsonSchema
    output_schema: JsonSchema | None
    header_parameters: tuple[HeaderParameter, ...]

    @property
    def tool(self) -> "ITool[Any, Any]":
        """The tool itself."""
        return cast("ITool[Any, Any]", self.feature)

    @classmethod
    def of(cls, tool: "ITool[Any, Any]", limits: Limits, toolset: str | None = None) -> "ToolSpec":
        """Describe `tool`.

        Raises:
            ConfigurationError: if a schema cannot be made or names an impossible header.
        """
        input_schema = tool.input_schema
        if input_schema.get("type") != "object":
            raise ConfigurationError(f'Tool {tool.name!r}: the root of an input schema must have "type": "object"')
        headers = header_parameters(tool.name, input_schema)
        return cls(tool, "tool", tool.name, limits, toolset, input_schema, tool.output_schema, headers)
