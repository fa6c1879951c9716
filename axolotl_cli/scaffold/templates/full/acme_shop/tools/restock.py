"""A tool as a method, which may take minutes: clients that support tasks can run it as one, and come back later."""

from typing import Annotated

from axolotl_core import Context, ToolAnnotations, ToolError, tool
from pydantic import BaseModel, Field

from acme_shop.orders import IOrders


class RestockReport(BaseModel):
    item: str
    in_stock: int


class Warehouse:
    def __init__(self, orders: IOrders) -> None:
        self._orders = orders

    @tool(task_support="optional", timeout_seconds=600, annotations=ToolAnnotations(destructive=True))
    async def restock(
        self,
        item: Annotated[str, Field(description="The item to order.")],
        boxes: Annotated[int, Field(ge=1, le=100, description="How many boxes of twelve.")],
        context: Context,
    ) -> RestockReport:
        """Order more of an item, one box after the other."""
        in_stock = 0
        for box in range(1, boxes + 1):
            added = await self._orders.add_stock(item, 12)
            if added is None:
                raise ToolError(f"The shop does not sell {item}.")
            in_stock = added
            context.report_progress(box, boxes, f"box {box} of {boxes}")
        return RestockReport(item=item, in_stock=in_stock)
