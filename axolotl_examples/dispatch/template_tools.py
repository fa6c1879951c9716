"""Tools created from text templates while the server runs."""

from string import Template
from typing import Any

from axolotl_core import ToolError, ToolRegistry


class TemplateTools:
    """Registers tools that fill in a text template, and removes only tools that it has registered."""

    def __init__(self, registry: ToolRegistry, maximum: int = 100) -> None:
        self._registry = registry
        self._maximum = maximum
        self._defined: set[str] = set()

    def define(self, name: str, description: str, text: str) -> list[str]:
        """Register a tool with one argument per `$placeholder` in the text, and return the argument names.

        Raises `ToolError` if the name is taken, a `$` does not begin a placeholder, or there are too many tools.
        """
        if len(self._defined) >= self._maximum:
            raise ToolError(f"There are {self._maximum} defined tools already; remove one with remove_tool first.")
        template = Template(text)
        if not template.is_valid():
            raise ToolError("Each $ must begin a placeholder such as $name. Write $$ for a literal dollar sign.")
        placeholders = template.get_identifiers()

        async def fill(arguments: dict[str, Any]) -> str:
            return template.substitute(arguments)

        if not self._registry.register_tool(name, _schema_of(placeholders), fill, description=description):
            raise ToolError(f"A tool {name!r} already exists; choose another name.")
        self._defined.add(name.casefold())
        return placeholders

    def remove(self, name: str) -> None:
        """Remove a tool. Raises `ToolError` unless `define` has registered it."""
        if name.casefold() not in self._defined:
            raise ToolError(f"No tool {name!r} has been defined.")
        self._defined.remove(name.casefold())
        self._registry.unregister(name)


def _schema_of(placeholders: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": f"The value of ${name}."} for name in placeholders},
        "required": placeholders,
        "additionalProperties": False,
    }
