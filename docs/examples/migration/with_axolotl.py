from typing import Annotated

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, NoArguments, ToolError, prompt, resource, tool

ORDERS = {1: "packed", 2: "sent"}


# region tool
class Order(BaseModel):
    number: int
    state: str


@tool(timeout_seconds=5)
def track_order(number: Annotated[int, Field(ge=1, description="The number of the order.")]) -> Order:
    """Tell where an order is."""
    if number not in ORDERS:
        raise ToolError(f"There is no order {number}")
    return Order(number=number, state=ORDERS[number])


# endregion tool


# region context
@tool
async def pack_orders(numbers: list[int], context: Context) -> int:
    """Pack several orders."""
    for done, number in enumerate(numbers, start=1):
        ORDERS[number] = "packed"
        context.report_progress(done, len(numbers))
    context.log("info", f"packed {len(numbers)} orders")
    return len(numbers)


# endregion context


# region service
class CountOrders(ITool[NoArguments, int]):
    name = "count_orders"
    description = "Count the orders."

    def __init__(self, orders: dict[int, str]) -> None:
        self._orders = orders

    async def execute(self, arguments: NoArguments, context: Context) -> int:
        return len(self._orders)


# endregion service


# region resource
@resource("orders://{number}")
def order_page(number: int) -> str:
    """The page of an order."""
    return f"Order {number} is {ORDERS[number]}."


@prompt
def apology(name: str) -> str:
    """Apologize for a late order."""
    return f"Apologize to {name} for the late order, in two sentences."


# endregion resource


# region container
class Container(containers.DeclarativeContainer):
    orders = providers.Object(ORDERS)
    tools = providers.List(
        providers.Object(track_order), providers.Object(pack_orders), providers.Singleton(CountOrders, orders)
    )
    resources = providers.List(providers.Object(order_page))
    prompts = providers.List(providers.Object(apology))


# endregion container
