"""The first tool of every server: it gives back what it got."""

from pydantic import BaseModel, Field

from axolotl_core import ITool, ToolContext

__all__ = ["Echo", "EchoInput"]


class EchoInput(BaseModel):
    """What to give back; the tool's schema is made from this."""

    text: str = Field(description="要回显的内容")


class Echo(ITool[EchoInput, str]):
    """Gives a text back."""

    name = "echo"
    description = "回显输入文本"

    async def execute(self, arguments: EchoInput, context: ToolContext) -> str:
        """Give the text back."""
        return arguments.text
