"""One tool, and the container that serves it."""

from axolotl_core import Context, ITool, ToolAnnotations
from dependency_injector import containers, providers
from pydantic import BaseModel, Field


class Person(BaseModel):
    name: str = Field(description="Whom to greet.")


class Greet(ITool[Person, str]):
    name = "greet"
    description = "Greet someone by name."
    annotations = ToolAnnotations(read_only=True)

    async def execute(self, arguments: Person, context: Context) -> str:
        return f"Hello, {arguments.name}!"


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(Greet))
