"""Two tools that create and remove other tools, which fill in text templates."""

from string import Template
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from axolotl_core import ToolAnnotations, ToolError, ToolRegistry, tool


def _check_printable(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("not_printable", "must be one line of printable characters")
    return text


NewName = Annotated[
    str, Field(description="The name of the new tool.", pattern=r"^[A-Za-z0-9_.-]{1,64}$", examples=["greet"])
]
Text = Annotated[
    str,
    Field(
        max_length=2000,
        description="The reply of the new tool. Each $placeholder becomes an argument.",
        examples=["Hello, $name!"],
    ),
]
Description = Annotated[
    str,
    Field(
        max_length=200,
        description="When to call the new tool: one line of text.",
        examples=["Greet someone by name."],
    ),
    AfterValidator(_check_printable),
]
DefinedName = Annotated[str, Field(description="The name of a tool created with define_tool.", examples=["greet"])]


class TemplateTools:
    """Registers tools while the server runs, and removes only tools that it has registered."""

    def __init__(self, registry: ToolRegistry, maximum: int = 100) -> None:
        self._registry = registry
        self._maximum = maximum
        self._defined: set[str] = set()

    @tool(title="Define a tool")
    async def define_tool(self, name: NewName, text: Text, description: Description = "") -> str:
        """Create a tool from a text template. Clients are notified that the list of tools has changed."""
        if len(self._defined) >= self._maximum:
            raise ToolError(f"There are {self._maximum} defined tools already; remove one with remove_tool first.")
        template = Template(text)
        if not template.is_valid():
            raise ToolError("Each $ must begin a placeholder such as $name. Write $$ for a literal dollar sign.")
        placeholders = template.get_identifiers()
        schema = {
            "type": "object",
            "properties": {name: {"type": "string", "description": f"The value of ${name}."} for name in placeholders},
            "required": placeholders,
            "additionalProperties": False,
        }

        async def fill(arguments: dict[str, Any]) -> str:
            return template.substitute(arguments)

        if not self._registry.register_tool(name, schema, fill, description=description):
            raise ToolError(f"A tool {name!r} already exists; choose another name.")
        self._defined.add(name.casefold())
        return f"Tool {name} is ready; it takes {', '.join(placeholders) or 'no arguments'}."

    @tool(title="Remove a tool", annotations=ToolAnnotations(destructive=True))
    async def remove_tool(self, name: DefinedName) -> str:
        """Remove a tool created with define_tool."""
        if name.casefold() not in self._defined:
            raise ToolError(f"No tool {name!r} has been defined.")
        self._defined.remove(name.casefold())
        self._registry.unregister(name)
        return f"Tool {name} is removed."
