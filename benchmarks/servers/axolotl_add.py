"""The container of an Axolotl server with one typed tool."""

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, ITool
from benchmarks.servers.functions import Sum


class Pair(BaseModel):
    """Two integers."""

    a: int
    b: int


class Add(ITool[Pair, Sum]):
    """Adds two integers."""

    name = "add"
    description = "Add two integers."

    async def execute(self, arguments: Pair, context: Context) -> Sum:
        return Sum(result=arguments.a + arguments.b)


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(Add))
