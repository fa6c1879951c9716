"""The container of an Axolotl server whose tool computes for about a millisecond."""

from dependency_injector import containers, providers

from axolotl_core import ITool, ToolContext
from benchmarks.servers.axolotl_add import Pair
from benchmarks.servers.functions import Sum

_STEPS = 40_000


class BusyAdd(ITool[Pair, Sum]):
    """Add two integers, the long way."""

    name = "add"
    description = "Add two integers."

    async def execute(self, arguments: Pair, context: ToolContext) -> Sum:
        """Return the sum."""
        for _ in range(_STEPS):
            pass
        return Sum(result=arguments.a + arguments.b)


class Container(containers.DeclarativeContainer):
    """List the tool."""

    tools = providers.List(providers.Singleton(BusyAdd))
