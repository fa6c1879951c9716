from typing import Annotated

from fastmcp import Context, FastMCP
from fastmcp.dependencies import Depends
from fastmcp.exceptions import ToolError
from pydantic import BaseModel, Field

ORDERS = {1: "packed", 2: "sent"}

# region tool
mcp = FastMCP("orders")


class Order(BaseModel):
    number: int
    state: str


@mcp.tool(timeout=5)
def track_order(number: Annotated[int, Field(ge=1, description="The number of the order.")]) -> Order:
    """Tell where an order is."""
    if number not in ORDERS:
        raise ToolError(f"There is no order {number}")
    return Order(number=number, state=ORDERS[number])


# endregion tool


# region context
@mcp.tool
async def pack_orders(numbers: list[int], ctx: Context) -> int:
    """Pack several orders."""
    for done, number in enumerate(numbers, start=1):
        ORDERS[number] = "packed"
        await ctx.report_progress(done, len(numbers))
    await ctx.info(f"packed {len(numbers)} orders")
    return len(numbers)


# endregion context


# region service
def orders() -> dict[int, str]:
    return ORDERS


@mcp.tool
def count_orders(orders: dict[int, str] = Depends(orders)) -> int:
    """Count the orders."""
    return len(orders)


# endregion service


# region resource
@mcp.resource("orders://{number}")
def order_page(number: int) -> str:
    """The page of an order."""
    return f"Order {number} is {ORDERS[number]}."


@mcp.prompt
def apology(name: str) -> str:
    """Apologize for a late order."""
    return f"Apologize to {name} for the late order, in two sentences."


# endregion resource


# region run
if __name__ == "__main__":
    mcp.run("http", port=8000)
# endregion run
