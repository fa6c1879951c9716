"""A tool as a function. A plain function runs in a thread, so it may block."""

from typing import Annotated, Literal

from axolotl_core import ToolAnnotations, tool
from pydantic import BaseModel, Field

_CENTS_PER_KILOGRAM = {"DE": 390, "FR": 890, "US": 2490}
_DAYS = {"DE": 2, "FR": 4, "US": 9}


class ShippingQuote(BaseModel):
    cents: int = Field(description="The price in euro cents.")
    days: int = Field(description="How many days the delivery takes.")


@tool(annotations=ToolAnnotations(read_only=True))
def quote_shipping(
    country: Annotated[Literal["DE", "FR", "US"], Field(description="The country of the customer.")],
    grams: Annotated[int, Field(ge=1, le=30_000, description="The weight of the parcel.")],
) -> ShippingQuote:
    """Calculate the price and the duration of a delivery."""
    kilograms = -(-grams // 1000)
    return ShippingQuote(cents=kilograms * _CENTS_PER_KILOGRAM[country], days=_DAYS[country])
