import re

from dependency_injector import containers, providers

from axolotl_core import tool
from axolotl_core.names import INameRule


# region rule
class NamespaceRule(INameRule):
    """Requires names of the form `namespace.method`."""

    def fault_of(self, name: str) -> str | None:
        if re.fullmatch(r"[a-z]+\.[a-z_]+", name):
            return None
        return "a tool name must have the form namespace.method, in lowercase letters"


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
