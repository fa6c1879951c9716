"""Tools that produce their answer piece by piece; the pieces are buffered into one result."""

from abc import abstractmethod
from collections.abc import AsyncIterator
from typing import Any, TypeVar, get_args

from axolotl_core.context import ToolContext
from axolotl_core.tool import InputT, ITool

__all__ = ["IStreamTool", "buffer", "buffered_type"]

ItemT = TypeVar("ItemT")


class IStreamTool(ITool[InputT, list[ItemT]]):
    """A tool that yields: `class Chat(IStreamTool[Question, str])`.

    Text pieces are joined to one text, other items become a list; a caller that asked for progress gets a
    notification for every item.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if get_args(getattr(cls, "output_model", None)) == (str,):
            cls.output_model = str

    @abstractmethod
    def stream(self, arguments: InputT, context: ToolContext) -> AsyncIterator[ItemT]:
        """Yield the pieces of the answer.

        Raises:
            ToolError: to tell the model what went wrong; the pieces so far are dropped.
        """

    async def execute(self, arguments: InputT, context: ToolContext) -> Any:
        """Buffer the stream."""
        return await buffer(self.stream(arguments, context), context)


async def buffer(stream: AsyncIterator[Any], context: ToolContext) -> Any:
    """Collect a stream: text is joined, anything else becomes a list."""
    items: list[Any] = []
    async for item in stream:
        items.append(item)
        context.report_progress(len(items))
    if items and all(isinstance(item, str) for item in items):
        return "".join(items)
    return items


def buffered_type(stream: Any) -> Any:
    """Give the type of a buffered stream: `str` for a stream of text, else a list of its items."""
    item: Any = next(iter(get_args(stream)), Any)
    return item if item in (str, Any) else list[item]
