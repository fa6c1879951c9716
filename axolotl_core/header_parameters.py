"""Arguments that a client repeats in HTTP headers, so that gateways can route without reading the body."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from axolotl_core.errors import ConfigurationError

__all__ = ["HeaderParameter", "header_parameters"]

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
