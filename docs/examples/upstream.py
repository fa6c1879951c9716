from dependency_injector import containers, providers

from axolotl_core import ToolAnnotations, ToolError, tool, tools_of
from axolotl_core.policies.tool_rules import Breaker, Retry


class Bank:
    """A service that may be down."""

    def __init__(self) -> None:
        self.rates = {"EUR": 1.0, "CHF": 0.93}
        self.down = False
        self.asked = 0

    async def fetch(self, currency: str) -> float | None:
        self.asked += 1
        if self.down:
            raise ConnectionError("the bank is down")
        return self.rates.get(currency)


# region tool
class Exchange:
    def __init__(self, bank: Bank) -> None:
        self._bank = bank

    @tool(
        annotations=ToolAnnotations(read_only=True),
        retry=Retry(attempts=3, base_seconds=0.01),
        breaker=Breaker(failures=2, window_seconds=30, open_seconds=15),
    )
    async def rate(self, currency: str) -> float:
        """Return an exchange rate."""
        found = await self._bank.fetch(currency)
        if found is None:
            raise ToolError(f"Unknown currency: {currency}")
        return found


# endregion tool


class Container(containers.DeclarativeContainer):
    bank = providers.Singleton(Bank)
    exchange = providers.Singleton(Exchange, bank)
    tools = providers.Callable(tools_of, exchange)
