"""A tool class whose schema is generated from its input model."""

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool


class EchoInput(BaseModel):
    text: str = Field(description="要回显的内容")


class Echo(ITool[EchoInput, str]):
    """Returns a text."""

    name = "echo"
    description = "回显输入文本"

    async def execute(self, arguments: EchoInput, context: Context) -> str:
        return arguments.text
