"""A slow tool with its own limits and a service that tests replace."""

from collections.abc import Awaitable, Callable

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool


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
