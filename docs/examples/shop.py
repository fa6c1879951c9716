from collections.abc import AsyncIterator, Iterator

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import ITool, ToolContext, ToolError


# region services
class Orders:
    """A service: knows nothing about tools."""

    def __init__(self, rows: dict[int, str]) -> None:
        self._rows = rows

    async def find(self, number: int) -> str | None:
        return self._rows.get(number)

    async def close(self) -> None:
        self._rows.clear()


class OrderNumber(BaseModel):
    number: int = Field(description="The number on the receipt.")


class TrackOrder(ITool[OrderNumber, str]):
    name = "track_order"
    description = "Tell where an order is."

    def __init__(self, orders: Orders, *, currency: str) -> None:
        self._orders = orders
        self._currency = currency

    async def execute(self, arguments: OrderNumber, context: ToolContext) -> str:
        state = await self._orders.find(arguments.number)
        if state is None:
            raise ToolError(f"There is no order {arguments.number}.")
        return f"{state} (prices in {self._currency})"


# endregion services


# region resources
async def open_orders() -> AsyncIterator[Orders]:
    """Start before the first request, stop after the last answer."""
    orders = Orders({7: "on its way"})
    yield orders
    await orders.close()


def open_journal(path: str) -> Iterator[list[str]]:
    """A resource need not be async."""
    journal = [f"opened {path}"]
    yield journal
    journal.append("closed")


# endregion resources


# region container
class Container(containers.DeclarativeContainer):
    currency = providers.Object("EUR")
    journal = providers.Resource(open_journal, "orders.log")
    orders = providers.Resource(open_orders)

    tools = providers.List(
        providers.Singleton(TrackOrder, orders, currency=currency),
    )


# endregion container
