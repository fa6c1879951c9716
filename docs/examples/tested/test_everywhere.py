import pytest

from axolotl_testing import ClientFactory, as_principal


@pytest.mark.axolotl(revisions=["2025-11-25", "2026-07-28"], transports=["memory", "http"])
async def test_track(axolotl_client: ClientFactory) -> None:
    async with axolotl_client(principal=as_principal("ann", roles=["clerk"])) as client:
        assert "Hamburg" in (await client.call("track", {"number": 7})).text
