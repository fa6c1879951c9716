from typing import Literal

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, tool


class Seat(BaseModel):
    kind: Literal["window", "aisle"] = Field(description="Where to sit.")
    bags: int = Field(0, ge=0, le=3, description="How many bags to check in.")


@tool
async def book(flight: str, context: Context) -> str:
    """Book a flight."""
    seat = await context.ask(Seat, f"How do you want to fly with {flight}?")
    return f"{flight}, {seat.kind}, {seat.bags} bags"


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(book))
