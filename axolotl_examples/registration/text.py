"""Text tools that a scan finds: every tool class and every `@tool` function in this module."""

from collections.abc import Awaitable, Callable

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, tool


class DelayedEchoInput(BaseModel):
    text: str = Field(description="要回显的内容")
    seconds: float = Field(description="等待的秒数", ge=0, le=60)


class DelayedEcho(ITool[DelayedEchoInput, str]):
    """Returns a text after a delay. A cancelled or timed-out call ends immediately."""

    name = "delayed_echo"
    description = "延时回显输入文本"
    timeout_seconds = 10.0
    max_concurrency = 2

    def __init__(self, pause: Callable[[float], Awaitable[None]]) -> None:
        self._pause = pause

    async def execute(self, arguments: DelayedEchoInput, context: Context) -> str:
        await self._pause(arguments.seconds)
        return arguments.text


class RepeatInput(BaseModel):
    text: str = Field(description="要重复的内容", min_length=1)
    times: int = Field(description="重复次数", ge=1, le=100)
    separator: str = Field(" ", description="分隔符")


class Repeat(ITool[RepeatInput, str]):
    """Repeats a text. The constraints of its input are part of the schema, and checked before it runs."""

    name = "repeat"
    description = "重复输入文本"

    async def execute(self, arguments: RepeatInput, context: Context) -> str:
        return arguments.separator.join([arguments.text] * arguments.times)


@tool
async def reverse(text: str) -> str:
    """反转输入文本

    Args:
        text: 要反转的内容
    """
    return text[::-1]
