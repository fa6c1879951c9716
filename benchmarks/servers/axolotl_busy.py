"""The container of an Axolotl server whose tool computes for some milliseconds on the event loop."""

from dependency_injector import containers, providers

from axolotl_core import Context, ITool
from benchmarks.servers.axolotl_add import Pair
from benchmarks.servers.functions import Sum, spin


class BusyAdd(ITool[Pair, Sum]):
    """Adds two integers slowly."""

    name = "add"
    description = "Add two integers."

    async def execute(self, arguments: Pair, context: Context) -> Sum:
        spin()
        return Sum(result=arguments.a + arguments.b)


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(BusyAdd))
