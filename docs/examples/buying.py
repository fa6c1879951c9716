import asyncio
from typing import Any

from dependency_injector import containers, providers
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult
from pydantic import BaseModel

from axolotl_core import Context, tool, tools_of


# region tool
class Consent(BaseModel):
    sure: bool


class Shop:
    def __init__(self) -> None:
        self.looked_up = 0
        self.sold = 0

    @tool
    async def buy(self, article: str, context: Context) -> str:
        """Buy something."""
        price = self._price(article)  # before the question: may run more than once
        consent = await context.ask(Consent, f"{article} costs {price} €. Buy it?")
        if not consent.sure:
            return "not bought"
        self.sold += 1  # after the last question: runs once
        return f"looked up {self.looked_up} times, sold {self.sold} times"

    def _price(self, article: str) -> int:
        self.looked_up += 1
        return len(article)


# endregion tool


class Container(containers.DeclarativeContainer):
    shop = providers.Singleton(Shop)
    tools = providers.Callable(tools_of, shop)


async def agree(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"sure": True})


async def main() -> None:
    server = StdioServerParameters(command="axolotl", args=["serve", "buying.py"])
    for mode in ("legacy", "auto"):
        async with Client(server, mode=mode, elicitation_callback=agree) as client:
            result = await client.call_tool("buy", {"article": "tea"})
            print(client.protocol_version, result.content)


if __name__ == "__main__":
    asyncio.run(main())
