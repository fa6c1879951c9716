"""A tool that takes tools away."""

from pydantic import BaseModel, Field

from axolotl_core import ITool, ToolAnnotations, ToolContext
from axolotl_examples.dispatch.template_tools import TemplateTools


class Removal(BaseModel):
    """Which tool is to go."""

    name: str = Field(description="The name of a tool that was defined before.", examples=["greet"])


class RemoveTool(ITool[Removal, str]):
    """Unregisters a tool while the server runs."""

    name = "remove_tool"
    title = "Remove a tool"
    description = "Take away a tool that was defined before."
    annotations = ToolAnnotations(destructive=True)

    def __init__(self, tools: TemplateTools) -> None:
        self._tools = tools

    async def execute(self, arguments: Removal, context: ToolContext) -> str:
        """Remove it, or say why not."""
        self._tools.remove(arguments.name)
        return f"Tool {arguments.name} is gone."
