"""A tool whose constraints and defaults are part of its schema and checked before it runs."""

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool


class RepeatInput(BaseModel):
    text: str = Field(description="要重复的内容", min_length=1)
    times: int = Field(description="重复次数", ge=1, le=100)
    separator: str = Field(" ", description="分隔符")


class Repeat(ITool[RepeatInput, str]):
    """Repeats a text."""

    name = "repeat"
    description = "重复输入文本"

    async def execute(self, arguments: RepeatInput, context: Context) -> str:
        return arguments.separator.join([arguments.text] * arguments.times)
