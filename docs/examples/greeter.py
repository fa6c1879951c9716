from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool


class Person(BaseModel):
    name: str = Field(description="Whom to greet.")


class Greet(ITool[Person, str]):
    name = "greet"
    description = "Greet someone by name."

    async def execute(self, arguments: Person, context: Context) -> str:
        return f"Hello, {arguments.name}!"


# region container
class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(Greet))


# endregion container
