import asyncio

from reviews import Container

from axolotl_server import connect


async def main() -> None:
    async with connect(Container()) as client:
        arguments = {"language": "Python", "strict": "true"}
        result = await client.request("prompts/get", {"name": "review", "arguments": arguments})
    for message in result["messages"]:
        print(message["role"], message["content"]["text"], sep=": ")


if __name__ == "__main__":
    asyncio.run(main())
