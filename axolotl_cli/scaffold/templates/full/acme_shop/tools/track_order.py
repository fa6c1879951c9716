"""A tool as a class, with a service that the container injects."""

from axolotl_core import Context, ITool, ToolAnnotations, ToolError

from acme_shop.models import OrderNumber, OrderState
from acme_shop.orders import IOrders


class TrackOrder(ITool[OrderNumber, OrderState]):
    name = "track_order"
    description = "Find the state of an order by its number."
    annotations = ToolAnnotations(read_only=True)

    def __init__(self, orders: IOrders) -> None:
        self._orders = orders

    async def execute(self, arguments: OrderNumber, context: Context) -> OrderState:
        found = await self._orders.find(arguments.number)
        if found is None:
            raise ToolError(f"There is no order {arguments.number}. Ask the customer for the number on the receipt.")
        return found
