from typing import Any

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, ToolRegistry


class Phrase(BaseModel):
    name: str = Field(description="The name of the new tool.", pattern="^[a-z_]+$")
    text: str = Field(description="The text it returns.")


class Learn(ITool[Phrase, str]):
    name = "learn"
    description = "Create a tool that returns a text."

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    async def execute(self, arguments: Phrase, context: Context) -> str:
        async def say(_: dict[str, Any]) -> str:
            return arguments.text

        added = self._registry.register_tool(arguments.name, {}, say, description=f"Return {arguments.text!r}.")
        return "created" if added else "that name is taken"


class Container(containers.DeclarativeContainer):
    tool_registry = providers.Singleton(ToolRegistry)
    tools = providers.List(providers.Singleton(Learn, tool_registry))
