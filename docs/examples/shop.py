from collections.abc import AsyncIterator, Iterator

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, ToolError


# region services
class Orders:
    """A service that does not depend on tools."""

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
    description = "Return the status of an order."

    def __init__(self, orders: Orders, *, currency: str) -> None:
        self._orders = orders
        self._currency = currency

    async def execute(self, arguments: OrderNumber, context: Context) -> str:
        state = await self._orders.find(arguments.number)
        if state is None:
            raise ToolError(f"There is no order {arguments.number}.")
        return f"{state} (prices in {self._currency})"


# endregion services


# region resources
async def open_orders() -> AsyncIterator[Orders]:
    """Opened before the first request, closed after the last answer."""
    orders = Orders({7: "on its way"})
    yield orders
    await orders.close()


def open_journal(path: str) -> Iterator[list[str]]:
    """A resource does not have to be async."""
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
