import asyncio
import sys

from mcp import Client, StdioServerParameters


async def greet(server: str | StdioServerParameters) -> None:
    async with Client(server) as client:
        result = await client.call_tool("greet", {"name": "Ada"})
        print(client.protocol_version, result.content)


if __name__ == "__main__":
    stdio = StdioServerParameters(command="axolotl", args=["serve", "greeter.py"])
    asyncio.run(greet(sys.argv[1] if len(sys.argv) > 1 else stdio))
