"""A tool that removes tools."""

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, ToolAnnotations
from axolotl_examples.dispatch.template_tools import TemplateTools


class Removal(BaseModel):
    """The tool to remove."""

    name: str = Field(description="The name of a tool created with define_tool.", examples=["greet"])


class RemoveTool(ITool[Removal, str]):
    """Unregisters a tool while the server runs."""

    name = "remove_tool"
    title = "Remove a tool"
    description = "Remove a tool created with define_tool."
    annotations = ToolAnnotations(destructive=True)

    def __init__(self, tools: TemplateTools) -> None:
        self._tools = tools

    async def execute(self, arguments: Removal, context: Context) -> str:
        self._tools.remove(arguments.name)
        return f"Tool {arguments.name} is removed."
