from dependency_injector import containers, providers

from axolotl_core import ToolError, tool
from axolotl_core.errors import Overloaded

ORDERS = {7: "on its way"}


# region told
@tool
async def track_order(number: int) -> str:
    """Return the status of an order."""
    if number not in ORDERS:
        raise ToolError(f"There is no order {number}; ask the customer for the number on the receipt.")
    return ORDERS[number]


# endregion told


# region later
@tool
async def print_label(number: int) -> str:
    """Print a shipping label."""
    raise Overloaded("The printer is busy; try again", retry_after_seconds=2)


# endregion later


# region hidden
@tool
async def refund(number: int) -> str:
    """Refund an order."""
    raise ConnectionError("cannot reach billing-db-3 as user root")


# endregion hidden


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(track_order), providers.Object(print_label), providers.Object(refund))
