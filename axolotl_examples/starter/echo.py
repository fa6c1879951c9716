"""A tool that gives back what it got."""

from pydantic import BaseModel, Field

from axolotl_core import ITool, ToolAnnotations, ToolContext


class Words(BaseModel):
    """What to give back."""

    text: str = Field(description="The text to give back.", examples=["hello"])


class Echo(ITool[Words, str]):
    """Shows that a call arrives and its answer returns."""

    name = "echo"
    title = "Echo"
    description = "Give a text back unchanged, to see that the connection works."
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    async def execute(self, arguments: Words, context: ToolContext) -> str:
        """Give the text back."""
        return arguments.text
