"""A tool that returns its argument."""

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, ToolAnnotations


class EchoInput(BaseModel):
    """The text to return."""

    text: str = Field(description="The text to return.", examples=["hello"])


class Echo(ITool[EchoInput, str]):
    """Returns a text unchanged."""

    name = "echo"
    title = "Echo"
    description = "Return a text unchanged, to check that the connection works."
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    async def execute(self, arguments: EchoInput, context: Context) -> str:
        return arguments.text
