import asyncio

from greeter import Container

from axolotl_core import tool
from axolotl_server import InProcessClient, ServerHost


@tool
async def wave() -> str:
    """Wave a hand."""
    return "👋"


async def names(client: InProcessClient) -> list[str]:
    return [definition["name"] for definition in await client.list_tools()]


async def main() -> None:
    async with ServerHost(Container()) as host:
        client = InProcessClient(host.handler)
        print(await names(client))
        host.registry.register(wave)
        host.registry.unregister("greet")
        print(await names(client))
        await client.close()


if __name__ == "__main__":
    asyncio.run(main())
