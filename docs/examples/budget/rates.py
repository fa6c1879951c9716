from typing import Annotated, Literal

from dependency_injector import containers, providers
from pydantic import Field

from axolotl_core import tool

Currency = Literal[
    "AUD", "BGN", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR", "ISK",
    "JPY", "KRW", "MXN", "MYR", "NOK", "NZD", "PHP", "PLN", "RON", "SEK", "SGD", "THB", "TRY", "USD", "ZAR",
]  # fmt: skip


@tool
async def exchange_rate(
    source: Annotated[Currency, Field(description="The currency to convert.")],
    target: Annotated[Currency, Field(description="The currency of the result.")],
    amount: Annotated[float, Field(title="Amount")] = 1.0,
) -> float:
    """Convert an amount of money."""
    return amount


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(exchange_rate))
