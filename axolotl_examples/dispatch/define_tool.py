"""A tool that creates tools."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from axolotl_core import Context, ITool
from axolotl_examples.dispatch.template_tools import TemplateTools


def _check_printable(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("not_printable", "must be one line of printable characters")
    return text


PrintableLine = Annotated[str, AfterValidator(_check_printable)]


class Definition(BaseModel):
    """The definition of a new tool."""

    name: str = Field(description="The name of the new tool.", pattern=r"^[A-Za-z0-9_.-]{1,64}$", examples=["greet"])
    text: str = Field(
        max_length=2000,
        description="The reply of the new tool. Each $placeholder becomes an argument.",
        examples=["Hello, $name!"],
    )
    description: PrintableLine = Field(
        "",
        max_length=200,
        description="When to call the new tool: one line of text.",
        examples=["Greet someone by name."],
    )


class DefineTool(ITool[Definition, str]):
    """Registers a tool while the server runs."""

    name = "define_tool"
    title = "Define a tool"
    description = "Create a tool from a text template. Clients are notified that the list of tools has changed."

    def __init__(self, tools: TemplateTools) -> None:
        self._tools = tools

    async def execute(self, arguments: Definition, context: Context) -> str:
        placeholders = self._tools.define(arguments.name, arguments.description, arguments.text)
        return f"Tool {arguments.name} is ready; it takes {', '.join(placeholders) or 'no arguments'}."
