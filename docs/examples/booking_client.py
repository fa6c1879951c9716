import asyncio
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult


async def answer(context: Any, params: Any) -> ElicitResult:
    print(params.message)
    return ElicitResult(action="accept", content={"kind": "aisle", "bags": 1})


async def main() -> None:
    server = StdioServerParameters(command="axolotl", args=["serve", "booking.py"])
    for mode in ("legacy", "auto"):
        async with Client(server, mode=mode, elicitation_callback=answer) as client:
            result = await client.call_tool("book", {"flight": "AX 7"})
            print(client.protocol_version, result.content)


if __name__ == "__main__":
    asyncio.run(main())
