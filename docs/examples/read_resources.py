import asyncio

from handbook import Container

from axolotl_server import RemoteError, connect


async def main() -> None:
    async with connect(Container()) as client:
        for uri in ("handbook://contents", "handbook://pages/2", "handbook://pages/9", "handbook://pages/two"):
            try:
                result = await client.request("resources/read", {"uri": uri})
                print(result["contents"][0]["text"])
            except RemoteError as error:
                print(error.code, error)


if __name__ == "__main__":
    asyncio.run(main())
