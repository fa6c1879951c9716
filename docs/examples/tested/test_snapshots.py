from syrupy.assertion import SnapshotAssertion

from axolotl_testing import ClientFactory, as_principal, listing, plain


async def test_what_models_read(axolotl_client: ClientFactory, snapshot: SnapshotAssertion) -> None:
    async with axolotl_client(principal=as_principal("dan", roles=["driver"])) as client:
        assert await listing(client) == snapshot
        assert plain(await client.call("track", {"number": 9})) == snapshot
