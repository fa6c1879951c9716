from typing import Literal

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool


class Order(BaseModel):
    number: int = Field(description="The number of the order.")
    language: str = Field("en", description="The language of the answer.")


class OrderState(BaseModel):
    state: Literal["packed", "sent", "lost"] = Field(description="Where the order is.")


class TrackOrder(ITool[Order, OrderState]):
    name = "track_order"
    description = "Tell in which state an order is."

    async def execute(self, arguments: Order, context: Context) -> OrderState:
        return OrderState(state="sent")


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(TrackOrder))
