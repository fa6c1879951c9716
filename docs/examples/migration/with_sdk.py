from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

ORDERS = {1: "packed", 2: "sent"}

# region tool
mcp = MCPServer("orders")


class Order(BaseModel):
    number: int
    state: str


@mcp.tool()
def track_order(number: Annotated[int, Field(ge=1, description="The number of the order.")]) -> Order:
    """Tell where an order is."""
    if number not in ORDERS:
        raise ToolError(f"There is no order {number}")
    return Order(number=number, state=ORDERS[number])


# endregion tool


# region context
@mcp.tool()
async def pack_orders(numbers: list[int], ctx: Context) -> int:
    """Pack several orders."""
    for done, number in enumerate(numbers, start=1):
        ORDERS[number] = "packed"
        await ctx.report_progress(done, len(numbers))
    await ctx.info(f"packed {len(numbers)} orders")
    return len(numbers)


# endregion context


# region resource
@mcp.resource("orders://{number}")
def order_page(number: int) -> str:
    """The page of an order."""
    return f"Order {number} is {ORDERS[number]}."


@mcp.prompt()
def apology(name: str) -> str:
    """Apologize for a late order."""
    return f"Apologize to {name} for the late order, in two sentences."


# endregion resource


# region run
if __name__ == "__main__":
    mcp.run("streamable-http", port=8000)
# endregion run
