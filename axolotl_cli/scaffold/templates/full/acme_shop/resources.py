"""Resources: data that clients read by URI."""

from axolotl_core import Context, ResourceNotFound, resource

from acme_shop.models import OrderState
from acme_shop.orders import IOrders


class OrderPages:
    def __init__(self, orders: IOrders) -> None:
        self._orders = orders

    @resource("orders://all", mime_type="text/plain")
    async def all_orders(self) -> str:
        """List all orders."""
        return "\n".join(f"{order.number}: {order.state}" for order in await self._orders.list())

    @resource("orders://{number}")
    async def order(self, number: int, context: Context) -> OrderState:
        """Show one order."""
        found = await self._orders.find(number)
        if found is None:
            raise ResourceNotFound(context.uri)
        return found
