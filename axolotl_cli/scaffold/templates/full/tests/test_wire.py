"""The server in a process of its own, called by the official client over HTTP."""

import pytest
from axolotl_testing import ServerFactory

official = pytest.importorskip("mcp.client.client", reason="pip install mcp")


async def test_wire(axolotl_server: ServerFactory) -> None:
    async with axolotl_server(profile="dev") as server, official.Client(server.url) as client:
        assert "track_order" in {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("track_order", {"number": 7})
        assert result.structured_content == {"number": 7, "state": "sent", "item": "tea"}
