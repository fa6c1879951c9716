from collections.abc import AsyncIterator

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool


class Invoice(BaseModel):
    number: int = Field(description="The number of the invoice.")


class Ledger:
    """The service that both tool sets use."""

    def __init__(self) -> None:
        self.open = {7, 8}


async def open_ledger() -> AsyncIterator[Ledger]:
    yield Ledger()


class IsOpen(ITool[Invoice, bool]):
    name = "is_open"
    description = "Tell whether an invoice is open."

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def execute(self, arguments: Invoice, context: Context) -> bool:
        return arguments.number in self._ledger.open


class CloseInvoice(ITool[Invoice, None]):
    name = "close_invoice"
    description = "Close an invoice."

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def execute(self, arguments: Invoice, context: Context) -> None:
        self._ledger.open.discard(arguments.number)


# region containers
class Services(containers.DeclarativeContainer):
    ledger = providers.Resource(open_ledger)


class Reading(containers.DeclarativeContainer):
    services = providers.DependenciesContainer()
    tools = providers.List(providers.Singleton(IsOpen, services.ledger))


class Writing(containers.DeclarativeContainer):
    ledger: providers.Dependency[Ledger] = providers.Dependency()
    tools = providers.List(providers.Singleton(CloseInvoice, ledger))


class Container(containers.DeclarativeContainer):
    services = providers.Container(Services)
    reading = providers.Container(Reading, services=services)
    writing = providers.Container(Writing, ledger=services.ledger)


# endregion containers
