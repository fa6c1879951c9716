"""What several modules share, and the inputs of the tools that are classes."""

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
