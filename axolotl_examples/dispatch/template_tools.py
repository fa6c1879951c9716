"""Tools that are made while the server runs, each from a text with gaps."""

from string import Template
from typing import Any

from axolotl_core import ToolError, ToolRegistry


class TemplateTools:
    """Registers tools that fill the gaps of a text, and removes those again, but no others."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._defined: set[str] = set()

    def define(self, name: str, description: str, text: str) -> list[str]:
        """Register a tool with an argument for each `$gap` of the text; answers what they are called.

        Raises:
            ToolError: if the name is taken, or a `$` is no gap.
        """
        template = Template(text)
        if not template.is_valid():
            raise ToolError("Each $ must begin a gap such as $name; write $$ for the sign itself.")
        gaps = template.get_identifiers()

        async def fill(arguments: dict[str, Any]) -> str:
            return template.substitute(arguments)

        if not self._registry.register_tool(name, _schema_of(gaps), fill, description=description):
            raise ToolError(f"There is a tool {name!r} already; choose another name.")
        self._defined.add(name.casefold())
        return gaps

    def remove(self, name: str) -> None:
        """Take a tool away that was defined here.

        Raises:
            ToolError: if there is none.
        """
        if name.casefold() not in self._defined:
            raise ToolError(f"No tool {name!r} was defined here.")
        self._defined.remove(name.casefold())
        self._registry.unregister(name)


def _schema_of(gaps: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {gap: {"type": "string", "description": f"What to put for ${gap}."} for gap in gaps},
        "required": gaps,
        "additionalProperties": False,
    }
