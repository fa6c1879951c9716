"""A tool that makes tools."""

from pydantic import BaseModel, Field

from axolotl_core import ITool, ToolContext
from axolotl_examples.dispatch.template_tools import TemplateTools


class Definition(BaseModel):
    """A tool to be."""

    name: str = Field(description="What the new tool is called.", pattern=r"^[A-Za-z0-9_.-]{1,64}$", examples=["greet"])
    text: str = Field(
        description="What the new tool answers; each $gap becomes an argument.", examples=["Hello, $name!"]
    )
    description: str = Field("", description="When to call the new tool.", examples=["Greet someone by name."])


class DefineTool(ITool[Definition, str]):
    """Registers a tool while the server runs."""

    name = "define_tool"
    title = "Define a tool"
    description = "Make a new tool from a text with gaps. Clients are told that the list of tools has changed."

    def __init__(self, tools: TemplateTools) -> None:
        self._tools = tools

    async def execute(self, arguments: Definition, context: ToolContext) -> str:
        """Define it, or say why not."""
        gaps = self._tools.define(arguments.name, arguments.description, arguments.text)
        return f"Tool {arguments.name} is ready; it takes {', '.join(gaps) or 'no arguments'}."
