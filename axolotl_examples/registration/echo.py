"""The first tool of every server. Its schema is made from its input model: what stands there is on the wire."""

from pydantic import BaseModel, Field

from axolotl_core import ITool, ToolContext


class EchoInput(BaseModel):
    text: str = Field(description="要回显的内容")


class Echo(ITool[EchoInput, str]):
    """Gives a text back."""

    name = "echo"
    description = "回显输入文本"

    async def execute(self, arguments: EchoInput, context: ToolContext) -> str:
        """Give the text back."""
        return arguments.text
