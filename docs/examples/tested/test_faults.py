from axolotl_testing import ClientFactory, Faults, as_principal, assert_refused, assert_result

CLERK = as_principal("ann", roles=["clerk"])


async def test_retries(axolotl_client: ClientFactory, axolotl_faults: Faults) -> None:
    axolotl_faults.raises("track", ConnectionError, times=2)
    async with axolotl_client(principal=CLERK) as client:
        assert_result(await client.call("track", {"number": 7}), {"place": "Hamburg"})


async def test_deadline(axolotl_client: ClientFactory, axolotl_faults: Faults) -> None:
    axolotl_faults.expire_deadline("track")
    async with axolotl_client(principal=CLERK) as client:
        await assert_refused(client.call("track", {"number": 7}), "timeout")
