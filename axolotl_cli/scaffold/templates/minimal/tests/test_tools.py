from axolotl_testing import ClientFactory, assert_result


async def test_greet(axolotl_client: ClientFactory) -> None:
    async with axolotl_client() as client:
        assert_result(await client.call("greet", {"name": "Ada"}), "Hello, Ada!")
