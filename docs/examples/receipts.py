import asyncio
from collections.abc import Mapping
from typing import Any

from dependency_injector import containers, providers

from axolotl_core import Context, ToolError
from axolotl_server import RemoteError, connect
from axolotl_server.extension import Extension, ExtensionMethod


# region extension
class Receipts(Extension):
    """Adds a method to the protocol."""

    identifier = "com.example/receipts"
    settings: Mapping[str, Any] = {"formats": ["text"]}

    @property
    def methods(self) -> Mapping[str, ExtensionMethod]:
        return {"receipts/get": self.get}

    async def get(self, params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        number = params.get("number")
        if not isinstance(number, int):
            raise ToolError("The receipt number must be an integer.")
        return {"receipt": f"Receipt {number}: paid"}


class Container(containers.DeclarativeContainer):
    extensions = providers.List(providers.Singleton(Receipts))
    tools = providers.List()


# endregion extension


# region client
async def main() -> None:
    async with connect(Container(), capabilities={"extensions": {"com.example/receipts": {}}}) as client:
        print((await client.request("server/discover", {}))["capabilities"]["extensions"])
        print((await client.request("receipts/get", {"number": 7}))["receipt"])
    async with connect(Container()) as client:
        try:
            await client.request("receipts/get", {"number": 7})
        except RemoteError as error:
            print(error.code, error, error.data)


# endregion client


if __name__ == "__main__":
    asyncio.run(main())
