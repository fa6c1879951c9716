"""A tool that yields its result in lines. A client gets them together at the end, and their number as its progress."""

from collections.abc import AsyncIterator

from axolotl_core import Context, IStreamTool, ToolAnnotations

from acme_shop.models import ExportRequest
from acme_shop.orders import IOrders


class ExportOrders(IStreamTool[ExportRequest, str]):
    name = "export_orders"
    description = "Export orders as lines of CSV: number, state, item."
    annotations = ToolAnnotations(read_only=True)

    def __init__(self, orders: IOrders) -> None:
        self._orders = orders

    async def stream(self, arguments: ExportRequest, context: Context) -> AsyncIterator[str]:
        for order in await self._orders.list():
            if arguments.state in (None, order.state):
                yield f"{order.number},{order.state},{order.item}\n"
