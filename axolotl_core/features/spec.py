"""A feature as the server runs it: its description and its effective limits, fixed when it is bound."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from axolotl_core.errors import ConfigurationError
from axolotl_core.schema import JsonSchema

if TYPE_CHECKING:
    from axolotl_core.features.feature import Execution, IFeature, Kind
    from axolotl_core.tools.tool import ITool

_KEYWORD = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")


@dataclass(frozen=True, slots=True)
class HeaderParameter:
    """One argument and the header that mirrors it."""

    header: bytes
    path: tuple[str, ...]

    def value_in(self, arguments: Any) -> Any:
        """Read the argument; None where it is absent or null."""
        value = arguments
        for key in self.path:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value


def header_parameters(tool: str, schema: Mapping[str, Any]) -> tuple[HeaderParameter, ...]:
    """Find the annotated arguments of a schema.

    Raises:
        ConfigurationError: if clients would drop the tool because of such an annotation.
    """
    found = tuple(_reachable(tool, schema, ()))
    if len(found) != _count(schema):
        raise ConfigurationError(f"Tool {tool!r}: {_KEYWORD} may only stand on properties reached through `properties`")
    names = [parameter.header for parameter in found]
    if len(set(names)) != len(names):
        raise ConfigurationError(f"Tool {tool!r}: two arguments name the same {_KEYWORD}")
    return found


def _reachable(tool: str, schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[HeaderParameter]:
    for name, child in schema.get("properties", {}).items():
        if not isinstance(child, Mapping):
            continue
        here = (*path, name)
        if _KEYWORD in child:
            yield HeaderParameter(_header_name(tool, here, child), here)
        yield from _reachable(tool, child, here)


def _header_name(tool: str, path: tuple[str, ...], schema: Mapping[str, Any]) -> bytes:
    name = schema[_KEYWORD]
    where = f"Tool {tool!r}, argument {'.'.join(path)!r}"
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise ConfigurationError(f"{where}: {_KEYWORD} must be a header token such as 'Tenant', not {name!r}")
    if schema.get("type") not in _TYPES:
        raise ConfigurationError(f"{where}: {_KEYWORD} may only stand on a string, integer or boolean")
    return b"mcp-param-" + name.lower().encode()


def _count(value: Any) -> int:
    if isinstance(value, Mapping):
        return (_KEYWORD in value) + sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, list) else 0


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
