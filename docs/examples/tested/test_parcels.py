from parcels import Places

from axolotl_testing import ClientFactory, as_principal, assert_refused, assert_result, assert_tool_error

CLERK = as_principal("ann", roles=["clerk"])


async def test_track(axolotl_client: ClientFactory) -> None:
    async with axolotl_client(overrides={"places": Places({1: "Kiel"})}, principal=CLERK) as client:
        assert_result(await client.call("track", {"number": 1}), {"place": "Kiel"})
        assert_tool_error(await client.call("track", {"number": 2}), "no parcel 2")
        await assert_refused(client.call("deliver", {"number": 1}), match="Tool not found")
