import re

from dependency_injector import containers, providers

from axolotl_core import INameRule, tool


# region rule
class NamespaceRule(INameRule):
    """Every tool here is called `namespace.method`."""

    def fault_of(self, name: str) -> str | None:
        if re.fullmatch(r"[a-z]+\.[a-z_]+", name):
            return None
        return "a tool's name has the form namespace.method, in small letters"


# endregion rule


@tool(name="orders.find")
async def find_order(number: int) -> str:
    """Find an order."""
    return f"order {number}"


# region container
class Container(containers.DeclarativeContainer):
    name_rule = providers.Singleton(NamespaceRule)
    tools = providers.List(providers.Object(find_order))


# endregion container
