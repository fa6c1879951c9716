"""`FeatureSpec`, `ToolSpec` and `Limits`, and arguments that clients repeat in HTTP headers."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.schema import JsonSchema, inlined, subschemas

if TYPE_CHECKING:
    from axolotl_core.features.feature import Execution, IFeature, Kind
    from axolotl_core.tools.tool import ITool

_KEYWORD = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")


class HeaderParameter(msgspec.Struct, frozen=True):
    """An argument and the HTTP header that repeats it."""

    header: bytes
    path: tuple[str, ...]

    def value_in(self, arguments: Any) -> Any:
        """Read the argument; None if it is absent or null."""
        value = arguments
        for key in self.path:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value


def header_parameters(tool: str, schema: Mapping[str, Any]) -> tuple[HeaderParameter, ...]:
    """Find the arguments of a schema that are annotated with a header.

    Raises:
        ConfigurationError: if an annotation is invalid, so that clients would ignore the tool.
    """
    found = tuple(_reachable(tool, schema, ()))
    if len(found) != sum(_KEYWORD in node for node in subschemas(schema)):
        raise ConfigurationError(f"Tool {tool!r}: {_KEYWORD} is only allowed in `properties`")
    names = [parameter.header for parameter in found]
    if len(set(names)) != len(names):
        raise ConfigurationError(f"Tool {tool!r}: two arguments have the same {_KEYWORD}")
    return found


def _reachable(tool: str, schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[HeaderParameter]:
    for name, child in schema.get("properties", {}).items():
        if not isinstance(child, Mapping):
            continue
        here = (*path, name)
        if _KEYWORD in child:
            header, where = child[_KEYWORD], f"Tool {tool!r}, argument {'.'.join(here)!r}"
            if not isinstance(header, str) or not _TOKEN.fullmatch(header):
                raise ConfigurationError(f"{where}: {_KEYWORD} must be a header token such as 'Tenant', not {header!r}")
            if child.get("type") not in _TYPES:
                raise ConfigurationError(f"{where}: {_KEYWORD} is only allowed on a string, integer or boolean")
            yield HeaderParameter(b"mcp-param-" + header.lower().encode(), here)
        yield from _reachable(tool, child, here)


class Limits(msgspec.Struct, frozen=True):
    """The effective limits of a feature, from settings, its attributes and defaults."""

    timeout_seconds: float
    max_concurrency: int | None
    execution: "Execution"
    coerce_arguments: bool
    max_timeout_seconds: float | None = None
    """How far progress can extend the deadline; None if it does not."""
    queue_limit: int = 0
    """How many calls may wait."""
    queue_timeout_seconds: float = 1.0
    pool: str | None = None
    """The pool of worker threads or tool processes; None for the server's threads, or for separate processes."""
    max_result_bytes: int | None = None


class FeatureSpec(msgspec.Struct, frozen=True, eq=False):
    """The description of a feature, as layers see it."""

    feature: "IFeature"
    kind: "Kind"
    name: str
    """The name used by limits, rules and records. For a resource, its URI or URI template."""
    limits: Limits
    toolset: str | None
    """The tool set that the feature belongs to."""

    @property
    def label(self) -> str:
        """Its kind and name, as the subject of an error."""
        return f"{self.kind.title()} {self.name}"


class ToolSpec(FeatureSpec, frozen=True, eq=False):
    """The description of a tool, with its schemas."""

    input_schema: JsonSchema
    output_schema: JsonSchema | None
    header_parameters: tuple[HeaderParameter, ...]

    @property
    def tool(self) -> "ITool[Any, Any]":
        """The tool."""
        return cast("ITool[Any, Any]", self.feature)

    @classmethod
    def of(
        cls, tool: "ITool[Any, Any]", limits: Limits, toolset: str | None = None, *, inline_references: bool = False
    ) -> "ToolSpec":
        """Describe a tool. With `inline_references`, its schemas refer only to definitions of recursive types.

        Raises:
            ConfigurationError: if its input schema or a header annotation is invalid, or a schema becomes too large.
        """
        input_schema, output_schema = tool.input_schema, tool.output_schema
        if inline_references:
            input_schema = _inlined(tool.name, "input", input_schema)
            output_schema = output_schema and _inlined(tool.name, "output", output_schema)
        if input_schema.get("type") != "object":
            raise ConfigurationError(f'Tool {tool.name!r}: the root of an input schema must have "type": "object"')
        headers = header_parameters(tool.name, input_schema)
        return cls(tool, "tool", tool.name, limits, toolset, input_schema, output_schema, headers)


def _inlined(tool: str, which: str, schema: JsonSchema) -> JsonSchema:
    try:
        return inlined(schema)
    except ValueError as error:
        raise ConfigurationError(
            f"Tool {tool!r}: the {which} schema is too large: {error}; "
            "turn off tools.inline_references, or use fewer nested models"
        ) from None
