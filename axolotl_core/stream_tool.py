"""Tools that produce their answer piece by piece; the pieces are buffered into one result."""

from abc import abstractmethod
from collections.abc import AsyncIterator
from typing import Any, TypeVar, get_args, get_origin

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
        declared = getattr(cls, "output_model", None)
        if get_origin(declared) is list:
            cls.output_model = buffered_type(declared)

    @abstractmethod
    def stream(self, arguments: InputT, context: ToolContext) -> AsyncIterator[ItemT]:
        """Yield the pieces of the answer.

        Raises:
            ToolError: to tell the model what went wrong; the pieces so far are dropped.
        """

    async def execute(self, arguments: InputT, context: ToolContext) -> Any:
        """Buffer the stream."""
        return await buffer(self.stream(arguments, context), context, self.output_model)


async def buffer(stream: AsyncIterator[Any], context: ToolContext, declared: Any) -> Any:
    """Collect a stream: declared text is joined, so is what turns out to be text where nothing is declared."""
    items: list[Any] = []
    async for item in stream:
        items.append(item)
        context.report_progress(len(items))
    undeclared_text = declared is Any and items and all(isinstance(item, str) for item in items)
    return "".join(items) if declared is str or undeclared_text else items


def buffered_type(stream: Any) -> Any:
    """Give the type of a buffered stream: `str` for a stream of text, else a list of its items."""
    item: Any = next(iter(get_args(stream)), Any)
    return item if item in (str, Any) else list[item]
