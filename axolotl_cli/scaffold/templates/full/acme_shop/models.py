"""The inputs and outputs of the tools."""

from typing import Literal

from pydantic import BaseModel, Field

State = Literal["open", "sent", "delivered"]


class OrderNumber(BaseModel):
    number: int = Field(ge=1, description="The number of the order, as on the receipt.")


class OrderState(BaseModel):
    number: int
    state: State
    item: str


class ExportRequest(BaseModel):
    state: State | None = Field(None, description="Export only orders in this state.")


class ShippingQuote(BaseModel):
    cents: int = Field(description="The price in euro cents.")
    days: int = Field(description="How many days the delivery takes.")


class RestockReport(BaseModel):
    item: str
    in_stock: int
