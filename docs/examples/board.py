import asyncio

from dependency_injector import containers, providers

from axolotl_core import ResourceRegistry, resource, resources_of, tool, tools_of
from axolotl_server import connect


class Board:
    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._lines: list[str] = []

    @tool
    async def write(self, line: str) -> int:
        """Write a line on the board."""
        self._lines.append(line)
        self._registry.updated("board://lines")
        return len(self._lines)

    @resource("board://lines")
    async def lines(self) -> list[str]:
        """What is written on the board."""
        return self._lines


class Container(containers.DeclarativeContainer):
    resource_registry = providers.Singleton(ResourceRegistry)
    board = providers.Singleton(Board, resource_registry)
    tools = providers.Callable(tools_of, board)
    resources = providers.Callable(resources_of, board)


async def main() -> None:
    async with connect(Container()) as client, client.listen("board://lines") as changes:
        await client.call("write", {"line": "Milk is out."})
        change = await anext(changes)
        print(change.method, change.uri)
        print((await client.read_resource("board://lines")).text)


if __name__ == "__main__":
    asyncio.run(main())
