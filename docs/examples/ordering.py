from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool


class Card(BaseModel):
    card: str = Field(description="The card to charge.")


class Receipt(BaseModel):
    number: int


class Address(BaseModel):
    street: str = Field(title="Where should it be sent?")


class Bank:
    def __init__(self) -> None:
        self.charged: dict[str, Receipt] = {}

    async def charge(self, card: str, *, idempotency_key: str) -> Receipt:
        return self.charged.setdefault(idempotency_key, Receipt(number=len(self.charged) + 1))


# region step
class OrderTool(ITool[Card, str]):
    name = "order"
    description = "Pay, then choose an address."

    def __init__(self, bank: Bank) -> None:
        self._bank = bank

    async def execute(self, arguments: Card, context: Context) -> str:
        receipt = await context.step(
            "charge", lambda once: self._bank.charge(arguments.card, idempotency_key=once), model=Receipt
        )
        address = await context.ask(Address, "Your address, please.")
        return f"Receipt {receipt.number}, sent to {address.street}"


# endregion step


class Container(containers.DeclarativeContainer):
    bank = providers.Singleton(Bank)
    tools = providers.List(providers.Singleton(OrderTool, bank))
