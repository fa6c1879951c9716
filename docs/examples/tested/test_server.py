import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from axolotl_testing import Issuer, ServerFactory


async def test_server(axolotl_server: ServerFactory, axolotl_issuer: Issuer) -> None:
    token = axolotl_issuer.token("ann", roles=["clerk"])
    async with (
        axolotl_server(settings=axolotl_issuer.settings) as server,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(server.url, http_client=http)) as client,
    ):
        assert [tool.name for tool in (await client.list_tools()).tools] == ["track"]
