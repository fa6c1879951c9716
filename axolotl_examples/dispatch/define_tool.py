"""A tool that creates tools."""

from pydantic import BaseModel, Field

from axolotl_core import ITool, ToolContext
from axolotl_examples.dispatch.template_tools import TemplateTools


class Definition(BaseModel):
    """The definition of a new tool."""

    name: str = Field(description="The name of the new tool.", pattern=r"^[A-Za-z0-9_.-]{1,64}$", examples=["greet"])
    text: str = Field(
        description="The reply of the new tool. Each $placeholder becomes an argument.", examples=["Hello, $name!"]
    )
    description: str = Field("", description="When to call the new tool.", examples=["Greet someone by name."])


class DefineTool(ITool[Definition, str]):
    """Registers a tool while the server runs."""

    name = "define_tool"
    title = "Define a tool"
    description = "Create a tool from a text template. Clients are notified that the list of tools has changed."

    def __init__(self, tools: TemplateTools) -> None:
        self._tools = tools

    async def execute(self, arguments: Definition, context: ToolContext) -> str:
        placeholders = self._tools.define(arguments.name, arguments.description, arguments.text)
        return f"Tool {arguments.name} is ready; it takes {', '.join(placeholders) or 'no arguments'}."
